"""How values of settings look, and the error about one that looks otherwise."""

import re
from collections.abc import Mapping
from pathlib import Path

from lakehouse.errors import SettingsError

MEMORY = (r"[1-9]\d*[kmgtKMGT]", "a number and its unit, such as 512m or 4g")
VERSION = (
    r"\d+\.\d+\.\d+(-[\w.-]+)?",
    "a version, such as 1.12.0, or 1.7.1-amzn-2 of who distributes it",
)
COUNT = (r"[1-9]\d*", "a number from 1 on")
_FIRST_PORT = 1024
_LAST_PORT = 65535
_ARCHIVE = (
    # Spark parts archives by commas, and their names by #.
    r"(s3://[^/#?%,\s]+/|(?!\S*://))[^#?%,\s]+\.(tar\.gz|tgz)",
    "a file such as executors.tar.gz, or s3://bucket/executors.tar.gz, without spaces and #?%,",
)
_CONNECT = re.compile(
    # Only with `/` before the first `;`, and a `=` in each of what follows, its client reads it.
    r"sc://(?:[^\s/?#;:@=\[\]]+|\[[\da-fA-F:.]+\])(?::(\d{1,5}))?"
    r"(?:/(?:;[^\s?#;=]+=[^\s?#;=]*)*)?"
)
HOST = (r"[\w.:-]+", "a name or an address of this machine")


def value_of_form(
    env: Mapping[str, str], name: str, form: tuple[str, str], default: str
) -> str:
    """Return a setting's value, or the default where it is not set.

    :param form: a regular expression, and what it stands for in words.
    :raises SettingsError: when it looks otherwise.
    """
    value, (pattern, expected) = env.get(name), form
    if value and not re.fullmatch(pattern, value):
        raise _otherwise(name, value, expected, default)
    return value or default


def count_value(env: Mapping[str, str], name: str) -> int | None:
    """Return a setting's value that is a number from 1 on; None where it is not set.

    :raises SettingsError: when it is none.
    """
    value = value_of_form(env, name, COUNT, "")
    return int(value) if value else None


def port_value(env: Mapping[str, str], name: str, ports: int) -> int | None:
    """Return a setting's value that is the first of some ports; None where it is not set.

    :raises SettingsError: when it is no port that a user may take, or the last of them is none.
    """
    last = _LAST_PORT - ports + 1
    form = (r"\d{1,5}", f"a port from {_FIRST_PORT} to {last}, such as 40000")
    value = value_of_form(env, name, form, "")
    if value and not _FIRST_PORT <= int(value) <= last:
        raise _otherwise(name, value, form[1], "")
    return int(value) if value else None


def archive_value(env: Mapping[str, str], name: str) -> str | None:
    """Return a setting's value that is an archive: an absolute path, or `s3://bucket/key`; None
    where it is not set.

    :raises SettingsError: when it is none that Spark unpacks.
    """
    value = env.get(name)
    if not value:
        return None
    place = archive_place(value)
    if not is_archive(place):
        raise _otherwise(name, place, _ARCHIVE[1], "")
    return place


def is_archive(place: str) -> bool:
    """Whether a place can be that of an archive for Spark."""
    return re.fullmatch(_ARCHIVE[0], place) is not None


def is_connect_address(address: str) -> bool:
    """Whether an address is one that a client of Spark Connect reads."""
    parts = _CONNECT.fullmatch(address)
    return parts is not None and 0 < int(parts[1] or 1) <= _LAST_PORT


def is_in_bucket(place: str) -> bool:
    """Whether an archive is in S3, and no file here."""
    return place.startswith("s3://")


def archive_place(value: str) -> str:
    """Return the place of an archive as others find it: a path is absolute."""
    return value if "://" in value else str(Path(value).expanduser().absolute())


def _otherwise(name: str, value: str, expected: str, default: str) -> SettingsError:
    unset = f" for {default}" if default else ""
    return SettingsError(
        f"{name} is {value!r}; expected {expected}.",
        next_step=f"Correct it, or unset it{unset}.",
    )
