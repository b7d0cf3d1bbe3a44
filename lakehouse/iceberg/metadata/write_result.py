"""What came of a write, and what its rules found; values without behaviour."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lakehouse.tables.bounds import Level, Number
from lakehouse.tables.rule import Rule
from lakehouse.tables.upkeep import DEFAULTS


@dataclass(frozen=True)
class RuleResult:
    """What one rule found in the rows, or in the metadata, that it was evaluated on.

    `sample` holds at most 20 of the rows that break it, personal values masked. `value` is what
    a rule measured, and None where it counts rows or had nothing to measure; `note` says what
    there is to say beside it.
    """

    rule: Rule
    failed_rows: int
    total_rows: int
    sample: Sequence[Mapping[str, Any]] = ()
    value: Number | None = None
    note: str = ""

    @property
    def level(self) -> Level:
        """What comes of it: nothing, a warning, or that nothing may be published."""
        if self.rule.bounds is None:
            return self.rule.level_of_rows(self.failed_rows, self.total_rows)
        return self.rule.level_of_value(self.value)

    @property
    def passed(self) -> bool:
        """Whether no more than what is tolerated breaks the rule."""
        return self.level == "holds"

    @property
    def blocks(self) -> bool:
        """Whether nothing may be published for it."""
        return self.level == "fails"

    @property
    def summary(self) -> str:
        """What was found, in words: how many rows break the rule, or what was measured."""
        if self.rule.bounds is None:
            return (
                f"{self.failed_rows} of {self.total_rows}"
                f" {'row' if self.total_rows == 1 else 'rows'}"
            )
        value = "nothing to measure" if self.value is None else _short(self.value)
        return f"{value} ({self.note})" if self.note else value


def _short(value: Number) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Scanned:
    """How much of a table a read touches: data files and bytes, of all that the table has."""

    files: int
    total_files: int
    size_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Pin:
    """The exact state of an input that was read.

    `since_snapshot_id` is set where only what was appended after it was read; `note` says why
    an incremental input was read in full. `rows` is how many rows the range added, where the
    table's snapshots tell. `is_past` says that a past state is read, whatever comes to the table.
    """

    table: str
    snapshot_id: int | None
    since_snapshot_id: int | None = None
    rows: int | None = None
    note: str = ""
    scanned: Scanned | None = None
    is_past: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing new to read."""
        return self.snapshot_id is None or (
            self.since_snapshot_id is not None and self.rows == 0
        )


def by_table(pins: Iterable[Pin]) -> dict[str, Pin]:
    """Return pins by their table; of one that is read in its past too, that of now, which is what
    a table follows.
    """
    return {pin.table: pin for pin in sorted(pins, key=lambda pin: not pin.is_past)}


@dataclass(frozen=True)
class Quarantined:
    """Rows that were refused: how many, how many for the first time, and in which snapshot of
    the quarantine.

    `outside_rows` of them belong to no partition: each run of a table looks at those.
    """

    table: str
    rows: int
    new_rows: int
    snapshot_id: int | None
    outside_rows: int = 0
    left_out_rows: int = 0
    """Those of `outside_rows` that no rule was evaluated on."""


@dataclass(frozen=True)
class Outcome:
    """What all outcomes of a write have in common.

    `evaluated` says what the results speak of: `main`, or the candidate's branch.
    """

    table: str
    write_id: str
    snapshot_id: int | None
    """Snapshot that `main` has afterwards; None for a table without one."""
    results: Sequence[RuleResult] = ()
    pins: Mapping[str, Pin] = field(default_factory=dict)
    partitions: Sequence[str] = ()
    quarantined: Quarantined | None = None
    attempts: int = 1
    profile: Mapping[str, float] = field(default_factory=dict)
    """What was measured of the columns declared so, by metric."""
    gone_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows of people who were erased it was given and left out, by table."""


@dataclass(frozen=True)
class Published(Outcome):
    """`main` now holds the rows. Counts are those of this write; a merge counts rows inserted,
    updated and removed.
    """

    operation: str = ""
    added_rows: int = 0
    deleted_rows: int = 0
    inserted_rows: int | None = None
    updated_rows: int | None = None
    removed_rows: int | None = None
    added_files: int = 0
    added_bytes: int = 0
    row_count: int = 0
    """Rows of the whole table."""
    partition_row_count: int | None = None
    """Rows written to the run's partitions, where it has any."""


@dataclass(frozen=True)
class Refused(Outcome):
    """A blocking rule failed: `main` is as it was, and the candidate is kept on `branch` for a
    time.
    """

    branch: str = ""
    kept_for: timedelta = DEFAULTS.refused_for
    candidate_snapshot_id: int | None = None

    @property
    def reasons(self) -> list[RuleResult]:
        """The rules that block."""
        return [result for result in self.results if result.blocks]


@dataclass(frozen=True)
class Unchanged(Outcome):
    """The write would have changed no row, and committed nothing."""
