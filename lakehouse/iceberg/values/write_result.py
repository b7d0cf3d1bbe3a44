"""The outcome of a write and the results of its rules, as values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lakehouse.tables.rule import Level, Number, Rule
from lakehouse.tables.upkeep import DEFAULTS


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule, on rows or on metadata.

    `sample` contains at most 20 failing rows, with personal values masked. `value` is a
    measured value; None if the rule counts rows or had nothing to measure. `note` is an
    additional remark.
    """

    rule: Rule
    failed_rows: int
    total_rows: int
    sample: Sequence[Mapping[str, Any]] = ()
    value: Number | None = None
    note: str = ""

    @property
    def level(self) -> Level:
        """The consequence: pass, warn or block."""
        if self.rule.bounds is None:
            return self.rule.level_of_rows(self.failed_rows, self.total_rows)
        return self.rule.level_of_value(self.value)

    @property
    def passed(self) -> bool:
        """Whether the failures are within the tolerance."""
        return self.level == "holds"

    @property
    def blocks(self) -> bool:
        """Whether the result blocks the publish."""
        return self.level == "fails"

    @property
    def summary(self) -> str:
        """The result in words: the number of failing rows, or the measured value."""
        if self.rule.bounds is None:
            return (
                f"{self.failed_rows} of {self.total_rows}"
                f" {'row' if self.total_rows == 1 else 'rows'}"
            )
        value = "nothing to measure" if self.value is None else str(self.value)
        if isinstance(self.value, float):
            value = f"{self.value:.6g}"
        return f"{value} ({self.note})" if self.note else value


@dataclass(frozen=True)
class Pin:
    """The exact snapshot of an input that was read.

    `since_snapshot_id` is set if only later appends were read. `note` is the reason for a full
    read of an incremental input. `rows` is the number of rows in the range, if the snapshots
    contain it. `is_past` marks a fixed past snapshot.
    """

    table: str
    snapshot_id: int | None
    since_snapshot_id: int | None = None
    rows: int | None = None
    note: str = ""
    is_past: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing new to read."""
        return self.snapshot_id is None or (
            self.since_snapshot_id is not None and self.rows == 0
        )


def by_table(pins: Iterable[Pin]) -> dict[str, Pin]:
    """Return pins by table; a current pin takes precedence over a past one of the same table."""
    return {pin.table: pin for pin in sorted(pins, key=lambda pin: not pin.is_past)}


@dataclass(frozen=True)
class Quarantined:
    """Quarantined rows of a write; `outside_rows` of them are in no partition."""

    table: str
    rows: int
    new_rows: int
    snapshot_id: int | None
    outside_rows: int = 0
    unevaluated_rows: int = 0
    """Those of `outside_rows` that no rule was evaluated on."""


@dataclass(frozen=True)
class Outcome:
    """Common fields of all outcomes of a write."""

    table: str
    write_id: str
    snapshot_id: int | None
    """Snapshot of `main` afterwards; None for a table without one."""
    results: Sequence[RuleResult] = ()
    pins: Mapping[str, Pin] = field(default_factory=dict)
    partitions: Sequence[str] = ()
    quarantined: Quarantined | None = None
    attempts: int = 1
    profile: Mapping[str, float] = field(default_factory=dict)
    """Metrics of profiled columns, by name."""
    suppressed_rows: Mapping[str, int] = field(default_factory=dict)
    """Input rows of erased data subjects that were excluded, by table."""


@dataclass(frozen=True)
class Published(Outcome):
    """The write was published to `main`, with its counts."""

    operation: str = ""
    added_rows: int = 0
    deleted_rows: int = 0
    inserted_rows: int | None = None
    updated_rows: int | None = None
    removed_rows: int | None = None
    added_files: int = 0
    added_bytes: int = 0
    row_count: int = 0
    """Rows of the table."""
    partition_row_count: int | None = None
    """Rows written to the run's partitions, if it has any."""


@dataclass(frozen=True)
class Refused(Outcome):
    """A blocking rule failed: `main` is unchanged, and the candidate is retained on `branch`."""

    branch: str = ""
    kept_for: timedelta = DEFAULTS.refused_for
    candidate_snapshot_id: int | None = None

    @property
    def reasons(self) -> list[RuleResult]:
        """The blocking results."""
        return [result for result in self.results if result.blocks]


@dataclass(frozen=True)
class Unchanged(Outcome):
    """The write would have changed no row, and committed nothing."""
