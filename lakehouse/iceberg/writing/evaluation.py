"""All rules of a table evaluated: of what readers see, or of what a write is about to publish."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.history import MAIN, History, read_history
from lakehouse.iceberg.outcome import Pin, RuleResult
from lakehouse.iceberg.read import read, read_main
from lakehouse.iceberg.rules.measures import Difference
from lakehouse.iceberg.run import Partitions, within_partitions
from lakehouse.iceberg.table import IcebergTable
from lakehouse.iceberg.writing.audit import audit
from lakehouse.iceberg.writing.metadata_rules import judge_metadata
from lakehouse.iceberg.writing.reconciliation import comparing, reconcile
from lakehouse.iceberg.writing.stage import Attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def evaluate(
    engine: Engine, table: IcebergTable, partitions: Partitions | None = None, snapshot_id: int | None = None
) -> list[RuleResult]:
    """Evaluate a table's rules on what readers see, and write nothing; starts no Spark where metadata tells all.

    :param partitions: the partitions to look at, of a table that is overwritten by partitions; all where left out.
    :param snapshot_id: the state to look at; the current one where it is left out.
    :raises TableNotFound: when the table, or one that a rule compares it with, is not there.
    """
    history = read_history(engine, table.name)
    snapshot = history.main if snapshot_id is None else history.snapshots[snapshot_id]
    results = judge_metadata(engine, table, history, snapshot)
    if snapshot is None:
        results += [RuleResult(rule, 0, 0) for rule in table.rules if rule.kind != "metadata"]
        return _in_order(table, results)
    asked = [rule for rule in table.rules if rule.asks_rows]
    if asked:
        where = within_partitions(partitions, table.overwritten_by)
        rows = read(engine, Pin(table.name, snapshot.snapshot_id), where)
        results += audit(engine, table, rows, asked).results
    marks = {rule.measure.table: _computed_from(engine, history, rule.measure.table) for rule in comparing(table)}
    compared = reconcile(engine, table, snapshot, marks, partitions)
    return _in_order(table, [*results, *(_settled(engine, marks, result) for result in compared)])


def judge_candidate(attempt: Attempt) -> list[RuleResult]:
    """Evaluate of a staged write what its rows do not answer: metadata, and figures of other tables."""
    if all(rule.asks_rows for rule in attempt.table.rules):
        return []
    history = attempt.history()
    head = history.head(attempt.branch)
    pins = {pin.table: pin.snapshot_id for pin in attempt.pins.values()}
    judged = judge_metadata(attempt.engine, attempt.table, history, head)
    return [*judged, *reconcile(attempt.engine, attempt.table, head, pins, attempt.run.partitions)]


def reader_of_others(attempt: Attempt) -> "Callable[[str], DataFrame]":
    """Return what reads another table for a staged write: as the write itself read it, or as readers see it.

    The table itself is read as it will be once this is published: rows may refer to rows that came with them.
    """
    pins = {pin.table: pin.snapshot_id for pin in attempt.pins.values()}

    def read_other(name: str) -> "DataFrame":
        if name == attempt.table.name:
            return read(attempt.engine, Pin(name, attempt.history().refs[attempt.branch]))
        return read(attempt.engine, Pin(name, pins[name])) if name in pins else read_main(attempt.engine, name)

    return read_other


def _computed_from(engine: Engine, history: History, source: str) -> int | None:
    """Return the state of another table that the whole of one was computed from; its current one where none is told."""
    mark = history.watermark(source)
    return mark if mark is not None else read_history(engine, source).refs.get(MAIN)


def _settled(engine: Engine, marks: dict[str, int | None], result: RuleResult) -> RuleResult:
    """Say nothing of a difference while some of the table is yet to be computed from the newest state of the other.

    Some of its partitions may be: then the table agrees with no single state of the other.
    """
    assert isinstance(result.rule.measure, Difference)
    other = result.rule.measure.table
    if result.level == "holds" or marks[other] == read_history(engine, other).refs.get(MAIN):
        return result
    return replace(result, value=None, note=f"{result.note}; the newest of {other} is yet to be computed from")


def _in_order(table: IcebergTable, results: list[RuleResult]) -> list[RuleResult]:
    found = {result.rule.name: result for result in results}
    return [found[rule.name] for rule in table.rules]
