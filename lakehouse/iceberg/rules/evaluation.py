"""All rules of a table evaluated on what readers see."""

from dataclasses import replace

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, read_history
from lakehouse.iceberg.metadata.write_context import Partitions, within_partitions
from lakehouse.iceberg.metadata.write_result import Pin, RuleResult
from lakehouse.iceberg.read.inputs import read
from lakehouse.iceberg.rules.audit import audit
from lakehouse.iceberg.rules.metadata_rules import evaluate_metadata
from lakehouse.iceberg.rules.reconciliation import compared_tables, reconcile
from lakehouse.tables.measures import Difference
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
    results = evaluate_metadata(engine, table, history, snapshot)
    if snapshot is None:
        results += [RuleResult(rule, 0, 0) for rule in table.rules if rule.kind != "metadata"]
        return _in_order(table, results)
    asked = [rule for rule in table.rules if rule.asks_rows]
    if asked:
        where = within_partitions(partitions, table.overwritten_by)
        rows = read(engine, Pin(table.name, snapshot.snapshot_id), where)
        results += audit(engine, table, rows, asked).results
    marks = {other: _computed_from(engine, history, other) for other in compared_tables(table)}
    compared = reconcile(engine, table, snapshot, marks, partitions)
    return _in_order(
        table, [*results, *(_settled(engine, marks, result) for result in compared)]
    )


def _computed_from(engine: Engine, history: History, source: str) -> int | None:
    """Return the state of another table that the whole of one was computed from; its current
    one where none is told.
    """
    mark = history.watermark(source)
    return mark if mark is not None else read_history(engine, source).refs.get(MAIN)


def _settled(engine: Engine, marks: dict[str, int | None], result: RuleResult) -> RuleResult:
    """Say nothing of a difference while some of the table is yet to be computed from the newest
    state of the other.

    Some of its partitions may be: then the table agrees with no single state of the other.
    """
    assert isinstance(result.rule.measure, Difference)
    other = result.rule.measure.table
    if result.level == "holds" or marks[other] == read_history(engine, other).refs.get(MAIN):
        return result
    return replace(
        result,
        value=None,
        note=f"{result.note}; the newest of {other} is yet to be computed from",
    )


def _in_order(table: IcebergTable, results: list[RuleResult]) -> list[RuleResult]:
    found = {result.rule.name: result for result in results}
    return [found[rule.name] for rule in table.rules]
