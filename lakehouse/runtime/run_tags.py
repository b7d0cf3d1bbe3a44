"""Tags of runs that nobody has to read: Dagster's UI shows none whose key begins with `.dagster/`.

Stored runs of earlier versions have them under the keys that the code names them by, such as
`lakehouse/owed`; those are read too.
"""

from collections.abc import Mapping

HIDDEN_PREFIX = ".dagster/lakehouse_"
_PREFIX = "lakehouse/"
_HIDDEN = (
    "lakehouse/ad_hoc_files",
    "lakehouse/catch_up",
    "lakehouse/held.",
    "lakehouse/metrics",
    "lakehouse/owed",
    "lakehouse/process",
    "lakehouse/worker",
)
"""How the keys begin that only we read."""


def hidden_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of a run as they are stored: those that only we read under keys that the
    UI hides.
    """
    return {
        HIDDEN_PREFIX + key.removeprefix(_PREFIX) if key.startswith(_HIDDEN) else key: value
        for key, value in tags.items()
    }


def readable_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the stored tags of a run under the keys that the code names them by."""
    return {
        _PREFIX + key.removeprefix(HIDDEN_PREFIX)
        if key.startswith(HIDDEN_PREFIX)
        else key: value
        for key, value in tags.items()
    }
