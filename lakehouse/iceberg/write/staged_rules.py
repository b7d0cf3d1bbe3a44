"""The rules of a table evaluated on what a write is about to publish."""

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
    """Evaluate of a staged write what its rows do not answer: metadata, and figures of other
    tables.
    """
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


def reader_of_others(attempt: Attempt) -> "Callable[[str], DataFrame]":
    """Return what reads another table for a staged write: as the write itself read it, or as
    readers see it.

    The table itself is read as it will be once this is published: rows may refer to rows that
    came with them.
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
