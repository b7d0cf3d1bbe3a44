"""How a table is kept healthy: how long old snapshots and leftovers stay, and how files are
rewritten.
"""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal

from lakehouse.errors import DeclarationError

KeptBy = Literal["lakehouse", "glue", "nobody"]
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class UpkeepPolicy:
    """What a table is kept by: the parts are those of `Upkeep`, the values those of a table that
    declares nothing.
    """

    keep_snapshots_for: timedelta = timedelta(days=30)
    keep_at_least: int = 5
    orphans_after: timedelta = timedelta(days=7)
    refused_for: timedelta = timedelta(days=7)
    # Each tells of all snapshots, so that Iceberg's own number of 100 was most of a table's
    # metadata.
    metadata_files: int = 20
    sort_by: tuple[str, ...] = ()
    z_order: bool = False
    kept_by: KeptBy = "lakehouse"


DEFAULTS = UpkeepPolicy()
"""What a table is kept by where neither it nor its layer says otherwise."""


@dataclass(frozen=True)
class Upkeep:
    """What a table or a layer declares of its upkeep.

    A part that is left out is taken from `UPKEEP` of the layer's package, and where that leaves
    it out too it is as told below.

    :raises DeclarationError: when a part would remove what is still needed.
    """

    keep_snapshots_for: timedelta | None = None
    """How old a snapshot is when it expires, and time travel can no longer rely on it: 30
    days.
    """
    keep_at_least: int | None = None
    """How many snapshots stay however old they are, at least 1: 5."""
    orphans_after: timedelta | None = None
    """How old a file that no metadata names is when it is removed, at least a day: 7 days."""
    refused_for: timedelta | None = None
    """How long the branch of a refused write stays, at least a day: 7 days."""
    metadata_files: int | None = None
    """How many old metadata.json files stay, at least 1: 20."""
    sort_by: tuple[str, ...] | None = None
    """The columns that rewritten files are sorted by: none, so that they are joined as they are
    (bin-pack).
    """
    z_order: bool | None = None
    """Whether they are sorted by all these columns at once: no."""
    kept_by: KeptBy | None = None
    """Who compacts, expires and removes orphans: the lakehouse, the table optimizers of AWS Glue,
    or nobody.
    """

    def __post_init__(self) -> None:
        if isinstance(self.sort_by, str):
            object.__setattr__(self, "sort_by", (self.sort_by,))
        elif self.sort_by is not None:
            object.__setattr__(self, "sort_by", tuple(self.sort_by))
        if self.keep_snapshots_for is not None and self.keep_snapshots_for < timedelta(0):
            raise _refusal("keep_snapshots_for", self.keep_snapshots_for, "no age at all", "0")
        if self.keep_at_least is not None and self.keep_at_least < 1:
            raise _refusal("keep_at_least", self.keep_at_least, "no snapshot kept", "1")
        if self.metadata_files is not None and self.metadata_files < 1:
            raise _refusal("metadata_files", self.metadata_files, "no file kept", "1")
        if self.orphans_after is not None and self.orphans_after < _DAY:
            raise _refusal(
                "orphans_after",
                self.orphans_after,
                "the removal of files of writes that are still running",
                "a day",
            )
        if self.refused_for is not None and self.refused_for < _DAY:
            raise _refusal(
                "refused_for", self.refused_for, "no time to look at what was refused", "a day"
            )

    def over(self, wider: "Upkeep") -> "Upkeep":
        """Return this declaration with what it leaves out taken from a wider one."""
        return replace(wider, **_declared(self))

    @property
    def policy(self) -> UpkeepPolicy:
        """The policy, with what nobody declares taken from `DEFAULTS`."""
        return replace(DEFAULTS, **_declared(self))


def in_days(time: timedelta) -> str:
    """Return a time in words, as messages say it: `7 days`, `1 day`, `1.5 days`."""
    days = f"{time / _DAY:.3g}"
    return f"{days} day" if days == "1" else f"{days} days"


def _declared(upkeep: Upkeep) -> dict[str, Any]:
    declared = {}
    for part in fields(upkeep):
        value = getattr(upkeep, part.name)
        if value is not None:
            declared[part.name] = value
    return declared


def _refusal(part: str, value: object, meaning: str, least: str) -> DeclarationError:
    return DeclarationError(
        f"Upkeep({part}={value}) would mean {meaning}; expected {least} or more."
    )
