"""What a write reads, decided once and before its branch is made: the snapshots, whether in full,
and which partitions are stale.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from lakehouse.iceberg.metadata.commit_properties import has_earlier_digest
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import SINCE, Input
from lakehouse.iceberg.read.pinned_inputs import pin
from lakehouse.iceberg.read.rows_outside_partitions import was_left_out
from lakehouse.iceberg.read.stale_partitions import followed, stale_by_source
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class ReadPlan:
    """What one try at a write reads.

    It holds as long as the target's main is what it was in `target`: who branches off another
    snapshot plans again.
    """

    target: History
    pins: Mapping[str, Pin]
    stale: Mapping[str, Set[Any]]
    """By source, the values of the partition column that are stale; none of a run without
    partitions.
    """
    has_news: bool
    """Whether anything would come of the write.

    Nothing does where each input reads what is new and has nothing, or is another look at the
    table of such; or where the run is to compute partitions that were stale, and another did so
    since. Partitions that a person asks for are computed in full.
    """


def plan_read(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input], run: Run
) -> ReadPlan:
    """Decide what a write reads; asks Spark only where newer versions have come of rows that
    stand in other partitions.
    """
    target = read_history(engine, table.name)
    # Only partitions are computed in full by each run that a person starts: a whole table reads
    # what is new, unless all is asked for.
    full_recompute = (
        run.reads_everything
        or (run.full_recompute and run.partitions is not None)
        or _was_declared_otherwise(target, table)
        or was_left_out(engine, table, inputs, run.partitions)
    )
    pins = pin(
        engine,
        inputs,
        table.name,
        full_recompute=full_recompute,
        reads_everything=run.reads_everything,
    )
    stale = stale_by_source(engine, table, inputs, pins, run.partitions)
    return ReadPlan(target, pins, stale, _has_news(table, inputs, run, pins, stale))


def _was_declared_otherwise(target: History, table: IcebergTable) -> bool:
    """Whether the table's rows may be other than what it now declares: rules changed, or
    somebody else wrote.
    """
    last = target.last_write
    if last is None or last.commit is None:
        return True
    return last.commit.declaration != table.declaration_hash and not has_earlier_digest(
        last.commit
    )


def _has_news(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    run: Run,
    pins: Mapping[str, Pin],
    stale: Mapping[str, Set[Any]],
) -> bool:
    if run.partitions:
        if run.full_recompute or not followed(table, inputs):
            return True
        return any(map(run.partitions.is_computed_by, set().union(*stale.values())))
    since = [name for name, declared in inputs.items() if declared.mode in SINCE]
    followed_tables = {inputs[name].table for name in since}
    if any(declared.table not in followed_tables for declared in inputs.values()):
        return True
    return not since or any(not pins[name].is_empty for name in since)
