"""Rules of a table evaluated on a snapshot: all of them on what readers see, or those that its
rows do not answer.
"""

from collections.abc import Sequence
from dataclasses import replace

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, read_history
from lakehouse.iceberg.metadata.write_context import Partitions, within_partitions
from lakehouse.iceberg.metadata.write_result import Pin, RuleResult
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.rules.audit import audit
from lakehouse.iceberg.rules.evaluable_rule import (
    EvaluableRule,
    EvaluatedSnapshot,
    evaluable,
)
from lakehouse.iceberg.rules.snapshot_aggregates import TableAggregate, values_of
from lakehouse.tables.table import IcebergTable


def evaluate(
    engine: Engine,
    table: IcebergTable,
    partitions: Partitions | None = None,
    snapshot_id: int | None = None,
) -> list[RuleResult]:
    """Evaluate a table's rules on what readers see, and write nothing; starts no Spark where
    metadata tells all.

    :param partitions: the partitions to look at, of a table that is overwritten by partitions;
        all where left out.
    :param snapshot_id: the state to look at; the current one where it is left out.
    :raises TableNotFound: when the table, or one that a rule compares it with, is not there.
    """
    history = read_history(engine, table.name)
    snapshot = history.main if snapshot_id is None else history.snapshots[snapshot_id]
    rules = evaluable(table.rules)
    row_rules = [rule for rule in rules if rule.reads_rows]
    results = [RuleResult(rule, 0, 0) for rule in row_rules]
    pins = {}
    if snapshot and row_rules:
        where = within_partitions(partitions, table.overwritten_by)
        rows = read(engine, Pin(table.name, snapshot.snapshot_id), where)
        results = audit(engine, table, rows, row_rules).results
    if snapshot:
        pins = _computed_from(engine, history, rules)
    evaluated = EvaluatedSnapshot(engine, table, history, snapshot, pins, partitions)
    for result in evaluate_snapshot(evaluated, rules):
        results.append(_unless_stale(evaluated, result))
    by_name = {result.rule.name: result for result in results}
    return [by_name[rule.name] for rule in rules]


def evaluate_snapshot(
    evaluated: EvaluatedSnapshot, rules: Sequence[EvaluableRule]
) -> list[RuleResult]:
    """Evaluate the rules that rows do not answer: one query for all, and none where metadata
    tells; those of other kinds are passed over.
    """
    snapshot_rules = [rule for rule in rules if not rule.reads_rows]
    aggregates: list[TableAggregate] = []
    for rule in snapshot_rules:
        aggregates += rule.table_aggregates(evaluated)
    evaluated = replace(evaluated, values=values_of(evaluated.engine, aggregates))
    return [rule.snapshot_result(evaluated) for rule in snapshot_rules]


def evaluate_age(engine: Engine, table: IcebergTable, history: History) -> list[RuleResult]:
    """Evaluate the rules that cease to hold while nothing is written."""
    rules = [rule for rule in evaluable(table.rules) if rule.fails_with_time]
    return evaluate_snapshot(EvaluatedSnapshot(engine, table, history, history.main), rules)


def _computed_from(
    engine: Engine, history: History, rules: Sequence[EvaluableRule]
) -> dict[str, int | None]:
    """Return the states of other tables that the whole of one was computed from; the current
    one of a table where none is told.
    """
    pins = {}
    for rule in rules:
        for source in () if rule.reads_rows else rule.read_columns:
            watermark = history.watermark(source)
            pins[source] = _main(engine, source) if watermark is None else watermark
    return pins


def _main(engine: Engine, table: str) -> int | None:
    return read_history(engine, table).refs.get(MAIN)


def _unless_stale(evaluated: EvaluatedSnapshot, result: RuleResult) -> RuleResult:
    """Say nothing of a difference while some of the table is yet to be computed from the newest
    state of the other.

    Some of its partitions may be: then the table agrees with no single state of the other.
    """
    if result.passed:
        return result
    for other in result.rule.read_columns:
        if evaluated.pins.get(other) != _main(evaluated.engine, other):
            note = f"{result.note}; the newest of {other} is yet to be computed from"
            return replace(result, value=None, note=note)
    return result
