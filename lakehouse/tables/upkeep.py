"""Upkeep policy of a table: retention of snapshots and leftovers, and how files are rewritten."""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal

from lakehouse.errors import DeclarationError

KeptBy = Literal["lakehouse", "glue", "nobody"]
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class UpkeepPolicy:
    """The effective policy of a table. The fields are those of `Upkeep`, with defaults."""

    keep_snapshots_for: timedelta = timedelta(days=30)
    keep_at_least: int = 5
    orphans_after: timedelta = timedelta(days=7)
    refused_for: timedelta = timedelta(days=7)
    # Each metadata file lists all snapshots, so Iceberg's default of 100 files was most of a
    # table's metadata.
    metadata_files: int = 20
    sort_by: tuple[str, ...] = ()
    z_order: bool = False
    kept_by: KeptBy = "lakehouse"


DEFAULTS = UpkeepPolicy()
"""The policy if neither the table nor its layer declares anything."""


@dataclass(frozen=True)
class Upkeep:
    """Upkeep options of a table or a layer.

    An omitted option is taken from `UPKEEP` of the layer's package; if it is omitted there too,
    from the default stated below.

    :raises DeclarationError: if an option would remove data that is still needed.
    """

    keep_snapshots_for: timedelta | None = None
    """Age at which snapshots expire and time travel may fail; default: 30 days."""
    keep_at_least: int | None = None
    """Minimum number of snapshots to retain regardless of age, at least 1; default: 5."""
    orphans_after: timedelta | None = None
    """Age at which unreferenced files are removed, at least a day; default: 7 days."""
    refused_for: timedelta | None = None
    """Age at which the branch of a blocked write is removed, at least a day; default: 7 days.
    """
    metadata_files: int | None = None
    """Number of old metadata.json files to retain, at least 1; default: 20."""
    sort_by: tuple[str, ...] | None = None
    """Columns that rewritten files are sorted by; default: none (bin-pack)."""
    z_order: bool | None = None
    """Whether to sort by all of these columns at once; default: no."""
    kept_by: KeptBy | None = None
    """Who compacts, expires snapshots and removes orphans: the lakehouse, the table optimizers
    of AWS Glue, or nobody.
    """

    def __post_init__(self) -> None:
        if isinstance(self.sort_by, str):
            object.__setattr__(self, "sort_by", (self.sort_by,))
        elif self.sort_by is not None:
            object.__setattr__(self, "sort_by", tuple(self.sort_by))
        minimums = {
            "keep_snapshots_for": timedelta(0),
            "keep_at_least": 1,
            "metadata_files": 1,
            # Files of running writes are unreferenced too.
            "orphans_after": _DAY,
            "refused_for": _DAY,
        }
        for name, minimum in minimums.items():
            value = getattr(self, name)
            if value is not None and value < minimum:
                raise DeclarationError(f"Upkeep({name}={value}); expected {minimum} or more.")

    def over(self, wider: "Upkeep") -> "Upkeep":
        """Return this declaration with omitted options taken from a wider one."""
        return replace(wider, **_declared(self))

    @property
    def policy(self) -> UpkeepPolicy:
        """The effective policy, with omitted options taken from `DEFAULTS`."""
        return replace(DEFAULTS, **_declared(self))


def duration_text(span: timedelta) -> str:
    """Return a duration in words: `12 hours`, `1 day`, `1.5 days`."""
    number, noun = (span / _DAY, "day") if span >= _DAY else (span / timedelta(hours=1), "hour")
    text = f"{round(number, 2):g}"
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def _declared(upkeep: Upkeep) -> dict[str, Any]:
    declared = {}
    for part in fields(upkeep):
        value = getattr(upkeep, part.name)
        if value is not None:
            declared[part.name] = value
    return declared
