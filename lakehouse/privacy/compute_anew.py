"""Tables without a subject that have erased people in their sums are computed anew, in the
partitions whose source lost rows.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.erasure.erasure_commits import touched_partitions
from lakehouse.privacy.erasable import Erasable

Range = tuple[str, str] | None
"""The first and the last partition; None of a table without partitions."""


@dataclass(frozen=True)
class ComputedAnew:
    """The tables that were computed anew, and those that keep what they had."""

    computed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def tables_of_sums(erasable: Erasable, holding: Collection[str]) -> list[str]:
    """Return the tables that are computed from some that hold people, and hold none themselves."""
    of_people = {holder.table for subject in erasable.subjects for holder in subject.holders}
    found = []
    for name in sorted(erasable.tables):
        is_read = set(erasable.sources.get(name, ())) & set(holding)
        if is_read and name not in of_people and erasable.engine.catalog.has(name):
            found.append(name)
    return found


def compute_anew(erasable: Erasable, request_id: str, changed: Collection[str]) -> ComputedAnew:
    """Compute anew what has the rows in its sums that a request took; Spark is started where
    there is any.

    Ask it before the past of the tables goes: their commits tell which partitions are concerned.

    :param changed: the tables whose main lost rows.
    :raises LakehouseError: when a table could not be computed; the next call tries again.
    """
    names = tables_of_sums(erasable, changed)
    kept = tuple(name for name in names if erasable.tables[name].on_erasure == "keep")
    computed = []
    for name in names:
        if name in kept:
            continue
        for partitions in _ranges(erasable, request_id, name, changed):
            _compute(erasable, name, partitions)
            computed.append(name)
    return ComputedAnew(tuple(dict.fromkeys(computed)), kept)


def _compute(erasable: Erasable, name: str, partitions: Range) -> None:
    from lakehouse.orchestration.backfill import backfill

    first, last = partitions or (None, None)
    result = backfill(erasable.project, erasable.settings, name, first, last)
    if not result.success:
        raise LakehouseError(
            f"{name} could not be computed anew without the people who were erased; expected its"
            " run to succeed.",
            next_step="`lakehouse alerts` says why; the same call again goes on from here.",
        )


def _ranges(
    erasable: Erasable, request_id: str, name: str, changed: Collection[str]
) -> Iterator[Range]:
    """Yield the ranges of neighbouring partitions of a table that have the rows in them."""
    from lakehouse.orchestration.asset_inputs import inputs_of
    from lakehouse.orchestration.asset_keys import asset_key
    from lakehouse.orchestration.dagster_internals import asset_graph
    from lakehouse.orchestration.partition_bounds import keys_holding

    node = asset_graph(erasable.project(lambda: erasable.settings)).get(asset_key(name))
    if node.partitions_def is None:
        yield None
        return
    keys = node.partitions_def.get_partition_keys()
    touched: set[str] = set()
    for read in inputs_of(node.metadata).values():
        if read.table in changed:
            values = _touched(erasable, request_id, read.table, read.by)
            found = keys if values is None else keys_holding(node.partitions_def, keys, values)
            touched.update(found)
    yield from neighbours(keys, touched)


def _touched(
    erasable: Erasable, request_id: str, table: str, column: str | None
) -> set[Any] | None:
    if column is None:
        return None
    return touched_partitions(erasable.engine, table, request_id, column)


def neighbours(keys: Sequence[str], wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the first and the last of the wanted keys that follow one another."""
    first = last = ""
    for key in keys:
        if key in wanted:
            first, last = first or key, key
        elif first:
            yield first, last
            first = ""
    if first:
        yield first, last
