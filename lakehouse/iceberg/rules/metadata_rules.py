"""The rules that a table's metadata answers, evaluated: no data is read, and no Spark job
started.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.evolve.schema_changes import schema_changes
from lakehouse.iceberg.evolve.steps import Step
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot
from lakehouse.iceberg.metadata.table_state import read_state
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.tables.bounds import Number, hours
from lakehouse.tables.measures import (
    AgeHours,
    AverageFileMb,
    RowCount,
    RowCountChange,
    SchemaDifferences,
    against_text,
)
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

_MB = 2**20


@dataclass(frozen=True)
class _Look:
    """What is looked at: a snapshot of a table that readers see, or that they will see once it
    is published.
    """

    engine: Engine
    table: IcebergTable
    history: History
    snapshot: Snapshot | None
    now: datetime


def evaluate_metadata(
    engine: Engine,
    table: IcebergTable,
    history: History,
    snapshot: Snapshot | None,
    rules: Iterable[Rule] | None = None,
    *,
    now: datetime | None = None,
) -> list[RuleResult]:
    """Evaluate the rules that metadata answers; those of other kinds are passed over.

    :param history: the table's, as it was read last.
    :param snapshot: the candidate's, or that of main; None where nothing was ever written.
    """
    look = _Look(engine, table, history, snapshot, now or datetime.now(UTC))
    rows = snapshot.rows if snapshot else 0
    evaluated = [
        rule for rule in (table.rules if rules is None else rules) if rule.kind == "metadata"
    ]
    measured = [(rule, *_measure(look, rule)) for rule in evaluated]
    return [RuleResult(rule, 0, rows, value=value, note=note) for rule, value, note in measured]


def evaluate_age(engine: Engine, table: IcebergTable, history: History) -> list[RuleResult]:
    """Evaluate the rules that cease to hold while nothing is written: those of how long ago
    that was.
    """
    rules = [rule for rule in table.rules if isinstance(rule.measure, AgeHours)]
    return evaluate_metadata(engine, table, history, history.main, rules)


def _measure(look: _Look, rule: Rule) -> tuple[Number | None, str]:
    """Return what a rule measures, and what there is to say beside it."""
    match rule.measure:
        case RowCount():
            return (look.snapshot.rows if look.snapshot else 0), ""
        case RowCountChange(against):
            return _change(look, against)
        case AverageFileMb():
            return _average_file_mb(look.snapshot)
        case SchemaDifferences():
            return _schema_differences(look)
        case AgeHours():
            return _age_hours(look)
    raise AssertionError(f"{rule.name} is not measured by metadata: {rule.measure}")


def _change(look: _Look, against: timedelta | int) -> tuple[float | None, str]:
    if isinstance(against, int):
        earlier = next(iter(_written(look)[against:]), None)
    else:
        earlier = look.history.seen_at(look.now - against)
    if look.snapshot is None or earlier is None:
        return None, f"it has no state of {against_text(against)} earlier"
    before, rows = earlier.rows, look.snapshot.rows
    if before == 0:
        return None, f"it had no rows {against_text(against)} earlier"
    return (
        rows - before
    ) / before, f"{rows} rows, {before} before, in snapshot {earlier.snapshot_id}"


def _written(look: _Look) -> list[Snapshot]:
    """Return the states that writes made of the table, newest first, beginning with the one
    that is looked at.
    """
    current = {snapshot_id for _, snapshot_id in look.history.log}
    line = look.history.ancestors(look.snapshot.snapshot_id) if look.snapshot else ()
    return [
        found
        for found in line
        if found.is_write and (found is look.snapshot or found.snapshot_id in current)
    ]


def _average_file_mb(snapshot: Snapshot | None) -> tuple[float | None, str]:
    files = (
        snapshot.count("total-data-files") + snapshot.count("total-delete-files")
        if snapshot
        else 0
    )
    if snapshot is None or not files:
        return None, "it has no files"
    return snapshot.count("total-files-size") / files / _MB, f"{files} files"


def _schema_differences(look: _Look) -> tuple[int | None, str]:
    state = read_state(look.engine, look.table.name)
    if state is None:
        return None, "it is not there"
    changes = list(schema_changes(look.table, state))
    return len(changes), "; ".join(
        found.description if isinstance(found, Step) else str(found) for found in changes
    )


def _age_hours(look: _Look) -> tuple[float, str]:
    if look.snapshot and look.snapshot.snapshot_id not in {
        snapshot_id for _, snapshot_id in look.history.log
    }:
        return 0.0, "by this write"
    published = look.history.written_at
    if published is None:
        return math.inf, "rows were never published"
    return hours(look.now - published), f"last at {published:%Y-%m-%d %H:%M} UTC"
