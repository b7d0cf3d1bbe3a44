"""Evaluation of a table's rules on staged rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.write_result import Pin, RuleResult
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot, evaluable
from lakehouse.iceberg.rules.evaluation import evaluate_snapshot
from lakehouse.iceberg.write.write_attempt import Attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def evaluate_prepared(attempt: Attempt) -> list[RuleResult]:
    """Evaluate the rules that need metadata or metrics of other tables."""
    rules = evaluable(attempt.table.rules)
    if all(rule.reads_rows for rule in rules):
        return []
    history = attempt.history()
    evaluated = EvaluatedSnapshot(
        attempt.engine,
        attempt.table,
        history,
        history.head(attempt.branch),
        attempt.snapshot_ids,
        attempt.run.partitions,
    )
    return evaluate_snapshot(evaluated, rules)


def other_table_reader(attempt: Attempt) -> "Callable[[str], DataFrame]":
    """Return a function that reads another table for a staged write: as pinned by the write, or
    current.

    The table itself is read from the branch, so that rows can reference rows of the same write.
    """
    pins = attempt.snapshot_ids

    def read_other(name: str) -> "DataFrame":
        if name == attempt.table.name:
            return read(attempt.engine, Pin(name, attempt.history().refs[attempt.branch]))
        return (
            read(attempt.engine, Pin(name, pins[name]))
            if name in pins
            else read_main(attempt.engine, name)
        )

    return read_other
