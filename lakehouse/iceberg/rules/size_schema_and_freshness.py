"""Rules on a table's metadata, without a scan or Spark job.

In a write they are evaluated on the snapshot to publish, otherwise on the current one; always
on the entire table.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.erasure.erasure_commits import rows_erased_between
from lakehouse.iceberg.evolve.schema_changes import schema_changes
from lakehouse.iceberg.evolve.schema_steps import Step
from lakehouse.iceberg.metadata.snapshots import Snapshot
from lakehouse.iceberg.metadata.table_state import read_state
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedSnapshot
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.tables.rule import (
    BoundOptions,
    Bounds,
    Number,
    OnFailure,
    Rule,
    bounds_of,
    hours,
)


class MetadataRule(EvaluableRule):
    """Bounds on a metadata value."""

    reads_rows: ClassVar[bool] = False

    @property
    @abstractmethod
    def value_name(self) -> str:
        """Name of the value."""

    @abstractmethod
    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        """Return the value, None if there is none, and a note."""

    @property
    def sql(self) -> str:
        """The name of the value, and its bounds."""
        return f"{self.value_name} {self.bounds}"

    def snapshot_result(self, evaluated: EvaluatedSnapshot) -> RuleResult:
        """Return the value."""
        value, note = self.value(evaluated)
        return RuleResult(self, 0, evaluated.rows, value=value, note=note)


class RowCountRule(MetadataRule):
    """Rows of the table."""

    value_name: ClassVar[str] = "rows"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        return evaluated.rows, ""


@dataclass(frozen=True, kw_only=True)
class RowCountChangeRule(MetadataRule):
    """Growth of the rows since an earlier write or time; erased rows are not lost."""

    against: timedelta | int

    @property
    def value_name(self) -> str:
        """The reference of the growth."""
        return f"growth since {_age_text(self.against)} earlier"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        when = f"{_age_text(self.against)} earlier"
        if isinstance(self.against, int):
            earlier = next(iter(_written(evaluated)[self.against :]), None)
        else:
            earlier = evaluated.history.seen_at(evaluated.now - self.against)
        if evaluated.snapshot is None or earlier is None:
            return None, f"it has no snapshot of {when}"
        if earlier.rows == 0:
            return None, f"it had no rows {when}"
        erased = rows_erased_between(
            evaluated.history, earlier.snapshot_id, evaluated.snapshot.snapshot_id
        )
        growth = (evaluated.rows + erased - earlier.rows) / earlier.rows
        return growth, (
            f"{evaluated.rows} rows, {earlier.rows} before, in snapshot {earlier.snapshot_id}"
            + (f", and {erased} rows were erased since" if erased else "")
        )


class SchemaRule(MetadataRule):
    """Columns of the table that differ from the declaration."""

    value_name: ClassVar[str] = "differences from the declared columns"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        state = read_state(evaluated.engine, evaluated.table.name)
        if state is None:
            return None, "the table does not exist"
        changes = list(schema_changes(evaluated.table, state))
        return len(changes), "; ".join(
            change.description if isinstance(change, Step) else str(change)
            for change in changes
        )


@dataclass(frozen=True)
class FreshRule(MetadataRule):
    """Hours since rows were last published."""

    on_failure: OnFailure = "warn"
    fails_with_time: ClassVar[bool] = True
    value_name: ClassVar[str] = "hours since the last publish"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        snapshot, history = evaluated.snapshot, evaluated.history
        if snapshot and snapshot.snapshot_id not in _published_ids(evaluated):
            return 0.0, "by this write"
        published = history.written_at
        if published is None:
            return math.inf, "rows were never published"
        return hours(evaluated.now - published), f"last at {published:%Y-%m-%d %H:%M} UTC"


def row_count(
    low: int | None = None, high: int | None = None, **options: Unpack[BoundOptions]
) -> Rule:
    """The table has from `low` to `high` rows, inclusive; one can be omitted."""
    bounds = bounds_of("row_count", low, high)
    return RowCountRule.declare(
        "row_count", (), f"the table has {bounds} rows", options, bounds=bounds
    )


def row_count_change(
    at_most: float | None = None,
    at_least: float | None = None,
    *,
    against: timedelta | int = 1,
    **options: Unpack[BoundOptions],
) -> Rule:
    """Limit the growth or shrinkage of the table against an earlier snapshot, as a share of its
    rows then.

    With 100 rows before, `at_most=0.5` allows up to 150 rows and `at_least=-0.1` requires 90.
    Without such a snapshot, or if it had no rows, the rule passes.

    :param against: a number of writes, or a period before now.
    """
    bounds = bounds_of("row_count_change", at_least, at_most)
    if not (against > timedelta(0) if isinstance(against, timedelta) else against >= 1):
        raise DeclarationError(
            f"row_count_change(against={against!r}) is not in the past; expected 1 write or"
            " more."
        )
    return RowCountChangeRule.declare(
        "row_count_change",
        (),
        f"the number of rows changed by {bounds} of what it was {_age_text(against)} earlier",
        options,
        against=against,
        bounds=bounds,
    )


def schema_as_declared(**options: Unpack[BoundOptions]) -> Rule:
    """The table's columns match the declaration: names, types and comments."""
    description = "the columns are as declared"
    return SchemaRule.declare(
        "schema_as_declared", (), description, options, bounds=Bounds(high=0)
    )


def fresh(
    *, within: timedelta, warn_after: timedelta | None = None, **options: Unpack[BoundOptions]
) -> Rule:
    """Rows were published recently; a table that was never published fails.

    :param within: maximum time since the last publish.
    :param warn_after: a shorter time, after which the check warns.
    """
    return FreshRule.declare(
        "fresh",
        (),
        f"rows were published within {within}",
        options,
        bounds=Bounds(high=hours(within)),
        warn_outside=None if warn_after is None else Bounds(high=hours(warn_after)),
    )


def _age_text(against: timedelta | int) -> str:
    """Format the age of a reference snapshot."""
    if isinstance(against, timedelta):
        is_full_days = against == timedelta(days=against.days)
        return f"{against.days} days" if is_full_days else str(against)
    return "1 write" if against == 1 else f"{against} writes"


def _published_ids(evaluated: EvaluatedSnapshot) -> set[int]:
    return {snapshot_id for _, snapshot_id in evaluated.history.log}


def _written(evaluated: EvaluatedSnapshot) -> list[Snapshot]:
    """Return the snapshots of writes, newest first, starting with the evaluated one."""
    if evaluated.snapshot is None:
        return []
    published = _published_ids(evaluated)
    return [
        snapshot
        for snapshot in evaluated.history.ancestors(evaluated.snapshot.snapshot_id)
        if snapshot.is_write
        and (snapshot is evaluated.snapshot or snapshot.snapshot_id in published)
    ]
