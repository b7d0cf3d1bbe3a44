"""Evaluation of a table's rules on a snapshot: all rules, or those that do not read rows."""

from collections.abc import Sequence
from dataclasses import replace

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import MAIN, History, read_history
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.rules.audit import audit
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedSnapshot, evaluable
from lakehouse.iceberg.values.write_context import Partitions, within_partitions
from lakehouse.iceberg.values.write_result import Pin, RuleResult
from lakehouse.tables.table import IcebergTable


def evaluate(
    engine: Engine,
    table: IcebergTable,
    partitions: Partitions | None = None,
    snapshot_id: int | None = None,
) -> list[RuleResult]:
    """Evaluate a table's rules on a snapshot without a write; uses no Spark if metadata is
    sufficient.

    :param partitions: the partitions to evaluate, for a table that is overwritten by
        partitions; all by default.
    :param snapshot_id: the snapshot to evaluate; defaults to the current one.
    :raises TableNotFound: if the table, or one that a rule compares it with, does not exist.
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
    """Evaluate the rules that do not read rows; others are ignored."""
    return [rule.snapshot_result(evaluated) for rule in rules if not rule.reads_rows]


def evaluate_age(engine: Engine, table: IcebergTable, history: History) -> list[RuleResult]:
    """Evaluate the rules whose result can change without a write."""
    rules = [rule for rule in evaluable(table.rules) if rule.fails_with_time]
    return evaluate_snapshot(EvaluatedSnapshot(engine, table, history, history.main), rules)


def _computed_from(
    engine: Engine, history: History, rules: Sequence[EvaluableRule]
) -> dict[str, int | None]:
    """Return the snapshots of compared tables that the table was computed from."""
    pins = {}
    for rule in rules:
        for source in () if rule.reads_rows else rule.read_columns:
            watermark = history.watermark(source)
            pins[source] = _main(engine, source) if watermark is None else watermark
    return pins


def _main(engine: Engine, table: str) -> int | None:
    return read_history(engine, table).refs.get(MAIN)


def _unless_stale(evaluated: EvaluatedSnapshot, result: RuleResult) -> RuleResult:
    """Clear a failed comparison while the table does not follow the other's newest snapshot.

    If some partitions are stale, the table matches no single snapshot of the other.
    """
    if result.passed:
        return result
    for other in result.rule.read_columns:
        if evaluated.pins.get(other) != _main(evaluated.engine, other):
            note = f"{result.note}; not yet computed from the newest snapshot of {other}"
            return replace(result, value=None, note=note)
    return result
