"""How files of an old partition spec are split into chunks; no JVM."""

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.live_files import read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.upkeep.column_ranges import FileRange, merge_ranges
from lakehouse.iceberg.upkeep.compaction_chunks import Chunk, plan_chunks
from lakehouse.iceberg.upkeep.partition_filter import range_predicate
from lakehouse.settings import Settings

SCHEMA = Schema(
    NestedField(1, "zone", StringType()),
    NestedField(2, "id", LongType()),
    NestedField(3, "day", LongType()),
)
OLD = PartitionKey(0, (("zone", "a"),))


@pytest.fixture
def table(settings: Settings) -> Table:
    """A table by zone, that is to be one by day."""
    catalog = Catalog.of(settings).client
    catalog.create_namespace_if_not_exists("silver")
    by_zone = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "zone"))
    return catalog.create_table("silver.sick", SCHEMA, partition_spec=by_zone)


def append(table: Table, ids: range, day: int | None) -> None:
    rows = [{"zone": "a", "id": id_, "day": day} for id_ in ids]
    table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))


def partition_by_day(table: Table) -> None:
    with table.update_spec() as change:
        change.remove_field("zone")
        change.add_identity("day")


def planned(table: Table, *, files_a_chunk: int) -> list[Chunk]:
    """The chunks of the old partition, whose files have the right size."""
    sizes = [
        file.size_bytes
        for file in read_live_files(table, read_manifests(table))
        if file.partition == OLD
    ]
    return plan_chunks(table, [OLD], max(sizes), files_a_chunk * max(sizes), in_turns=True)


def predicates(table: Table, chunks: list[Chunk]) -> list[str]:
    assert all(chunk.rewrites_all and chunk.repeats == 1 for chunk in chunks)
    return [range_predicate(table, chunk.within) for chunk in chunks if chunk.within]


def test_an_old_partition_is_split_by_the_column_that_its_files_do_not_share(
    table: Table,
) -> None:
    for at in range(4):
        append(table, range(10 * at, 10 * at + 10), day=7)
    partition_by_day(table)
    chunks = planned(table, files_a_chunk=2)
    assert predicates(table, chunks) == [
        "`id` >= 0 AND `id` <= 19",
        "`id` >= 20 AND `id` <= 39",
    ]
    assert {chunk.partitions for chunk in chunks} == {(OLD,)}


def test_a_small_old_partition_is_one_chunk(table: Table) -> None:
    for at in range(2):
        append(table, range(10 * at, 10 * at + 10), day=7)
    partition_by_day(table)
    (chunk,) = planned(table, files_a_chunk=2)
    assert chunk.rewrites_all and chunk.within is None


def test_files_whose_columns_all_overlap_are_one_chunk(table: Table) -> None:
    for _ in range(4):
        append(table, range(10), day=7)
    partition_by_day(table)
    (chunk,) = planned(table, files_a_chunk=2)
    assert chunk.rewrites_all and chunk.within is None


def test_a_column_without_bounds_splits_nothing(table: Table) -> None:
    for at in range(4):
        append(table, range(10), day=at if at else None)
    partition_by_day(table)
    (chunk,) = planned(table, files_a_chunk=2)
    assert chunk.within is None


def test_a_file_of_todays_spec_is_met_by_one_chunk_alone(table: Table) -> None:
    for at in range(4):
        append(table, range(10 * at, 10 * at + 10), day=7)
    partition_by_day(table)
    # It has rows of the ids that the two chunks would part.
    append(table, range(15, 25), day=8)
    chunks = planned(table, files_a_chunk=2)
    assert predicates(table, chunks) == [
        "`id` >= 0 AND `id` <= 9",
        "`id` >= 10 AND `id` <= 29",
        "`id` >= 30 AND `id` <= 39",
    ]


def planned_for_small_files(table: Table, *, in_turns: bool) -> list[Chunk]:
    """The chunks of a partition of today's spec, of two files each."""
    sizes = [file.size_bytes for file in read_live_files(table, read_manifests(table))]
    return plan_chunks(table, [], 100 * max(sizes), 2 * max(sizes), in_turns=in_turns)


def test_small_files_of_a_large_partition_are_split_where_they_cannot_be_done_in_turns(
    table: Table,
) -> None:
    for at in range(4):
        append(table, range(10 * at, 10 * at + 10), day=7)
    (turns,) = planned_for_small_files(table, in_turns=True)
    assert (turns.most_files, turns.within) == (2, None)

    ranges = planned_for_small_files(table, in_turns=False)

    assert [chunk.within and chunk.within.low for chunk in ranges] == [0, 20]
    assert {(chunk.most_files, chunk.rewrites_all) for chunk in ranges} == {(None, False)}


def test_small_files_that_overlap_are_one_chunk_where_they_cannot_be_done_in_turns(
    table: Table,
) -> None:
    for _ in range(4):
        append(table, range(10), day=7)
    (chunk,) = planned_for_small_files(table, in_turns=False)
    assert (chunk.most_files, chunk.within, chunk.rewrites_all) == (None, None, False)


@pytest.mark.parametrize(
    ("file_ranges", "joined"),
    [
        ([], []),
        ([(1, 2, 40), (3, 4, 40), (5, 6, 40)], [(1, 4, 80), (5, 6, 40)]),
        ([(5, 6, 70), (1, 2, 70)], [(1, 2, 70), (5, 6, 70)]),
        # What overlaps stays together, whatever its size.
        ([(1, 3, 70), (3, 5, 70), (6, 7, 20)], [(1, 5, 140), (6, 7, 20)]),
        ([(1, 9, 10), (2, 3, 10), (4, 5, 10)], [(1, 9, 30)]),
    ],
)
def test_spans_are_joined(
    file_ranges: list[tuple[int, int, int]], joined: list[tuple[int, int, int]]
) -> None:
    expected = [FileRange(*file_range) for file_range in joined]
    assert (
        merge_ranges((FileRange(*file_range) for file_range in file_ranges), chunk_bytes=100)
        == expected
    )
