"""What a write reads, decided once and before its branch is made: the snapshots, whether in full,
and which partitions are stale.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import SINCE, Input
from lakehouse.iceberg.read.partitions_read_further import were_read_further
from lakehouse.iceberg.read.pinned_inputs import pin
from lakehouse.iceberg.read.rows_outside_partitions import was_left_out
from lakehouse.iceberg.read.stale_partitions import followed, stale_by_source
from lakehouse.iceberg.read.withdrawn_deliveries import Withdrawn, withdrawn_by_source
from lakehouse.tables.table import SOURCE_KEY, Append, IcebergTable, Merge


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
    withdrawn: Mapping[str, Withdrawn]
    """By source, what rejections took out of it since the target was last computed."""
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
        or were_read_further(target, table, inputs, run.partitions)
    )
    pin_inputs = partial(pin, engine, inputs, table.name, full_recompute=full_recompute)
    withdrawn_of = partial(
        withdrawn_by_source, engine, inputs, target=target, with_erasures=run.follows_erasures
    )
    pins = pin_inputs(reads_everything=run.reads_everything)
    withdrawn = withdrawn_of(pins)
    why = _why_all_again(table, inputs, pins, target, withdrawn)
    if why:
        pins = pin_inputs(reads_everything=True, because=why)
        withdrawn = withdrawn_of(pins)
    stale = stale_by_source(engine, table, inputs, pins, run.partitions)
    has_news = _has_news(table, inputs, run, pins, stale)
    return ReadPlan(target, pins, stale, withdrawn, has_news)


def _why_all_again(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    target: History,
    withdrawn: Mapping[str, Withdrawn],
) -> str:
    """Say why a table that is added to needs all rows of its inputs, though some of them could
    tell what is new; nothing where it does not.

    What was merged or appended of a rejected delivery may have taken the place of what another
    input gave, or been joined with it. So may rows of an input that is read again take the place
    of newer ones of another, where nothing but the order of their merges says which is newer.
    """
    if all(pinned.since_snapshot_id is None for pinned in pins.values()):
        return ""
    arriving = {
        declared.table: pins[name]
        for name, declared in inputs.items()
        if declared.mode == "incremental"
    }
    # Of these the function is told each key of which rows went.
    tell_keys = {
        declared.table for declared in inputs.values() if declared.mode == "changed_keys"
    }
    is_untold = bool(arriving) or not withdrawn.keys() <= tell_keys
    if withdrawn and is_untold and _loses_rejected_rows(table):
        return f"rows of a rejected delivery went from {', '.join(sorted(withdrawn))}"
    if not isinstance(table.write, Merge) or table.versions:
        return ""
    again = [
        source
        for source, pinned in sorted(arriving.items())
        if pinned.since_snapshot_id is None and target.watermark(source) is not None
    ]
    return f"rows of {', '.join(again)} are read again" if again else ""


def _loses_rejected_rows(table: IcebergTable) -> bool:
    """Whether a table is added to, and what it has of a rejected delivery is taken out of it."""
    has_source = set(SOURCE_KEY) <= set(table.column_names)
    return isinstance(table.write, Merge) or (isinstance(table.write, Append) and has_source)


def _was_declared_otherwise(target: History, table: IcebergTable) -> bool:
    """Whether the table's rows may be other than what it now declares: rules changed, or
    somebody else wrote.
    """
    last = target.last_write
    if last is None or last.commit is None:
        return True
    return last.commit.declaration != table.declaration_hash


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
