"""Table health from metadata, without a JVM: files, partitions, specs, refs and folder."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.health_measurement import measure_health
from lakehouse.iceberg.metadata.health_metrics import PartitionKey, TableHealth
from lakehouse.iceberg.metadata.manifests import LiveFile, dangling_deletes
from lakehouse.settings import Settings

NAME = "silver.orders"
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
BY_ID = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
ANY_FILE_IS_SMALL = {"write.target-file-size-bytes": str(2**20)}


@pytest.fixture(params=["settings", "aws_settings"])
def catalog(request: pytest.FixtureRequest) -> Catalog:
    """A catalog of each kind, which only PyIceberg opens."""
    return Catalog.of(request.getfixturevalue(request.param))


@pytest.fixture
def embedded(settings: Settings) -> Catalog:
    return Catalog.of(settings)


def made(
    catalog: Catalog, spec: PartitionSpec = BY_ID, properties: dict[str, str] | None = None
) -> Table:
    catalog.client.create_namespace_if_not_exists("silver")
    return catalog.client.create_table(
        NAME, SCHEMA, partition_spec=spec, properties=properties or ANY_FILE_IS_SMALL
    )


def append(table: Table, *ids: int) -> None:
    rows = [{"id": at, "day": datetime(2026, 3, 1, tzinfo=UTC).date()} for at in ids]
    table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))


def health(catalog: Catalog) -> TableHealth:
    return measure_health(NAME, catalog.load(NAME))


@pytest.mark.long
def test_files_are_counted_by_partition(catalog: Catalog) -> None:
    table = made(catalog)
    for ids in ((1, 2), (1, 1), (1,)):
        append(table, *ids)
    measured = health(catalog)
    one, two = measured.partitions
    assert (one.key, two.key) == (PartitionKey(0, (("id", 1),)), PartitionKey(0, (("id", 2),)))
    assert (one.rows, one.data_files, one.small_files, one.fewer_files(2**20)) == (4, 3, 3, 2)
    assert (two.rows, two.data_files, two.small_files, two.fewer_files(2**20)) == (1, 1, 1, 0)
    files = table.inspect.files().to_pylist()
    assert measured.data_bytes == sum(file["file_size_in_bytes"] for file in files)
    assert measured.file_sizes["max"] == max(file["file_size_in_bytes"] for file in files)
    assert (measured.small_file_share, measured.fewer_files, measured.rows) == (1.0, 2, 5)


def test_the_newest_file_of_a_partition_is_dated(embedded: Catalog) -> None:
    table = made(embedded)
    append(table, 1, 2)
    append(table, 1)
    first, second = (snapshot.timestamp_ms for snapshot in table.snapshots())
    one, two = health(embedded).partitions
    dated = [part.newest_file_at.timestamp() * 1000 for part in (one, two)]
    assert [round(at) for at in dated] == [second, first]


def test_files_of_old_specs_are_told_also_where_the_column_was_dropped(
    embedded: Catalog,
) -> None:
    table = made(embedded, PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day")))
    append(table, 1)
    with table.update_spec() as change:
        change.remove_field("day")
        change.add_identity("id")
    append(table, 1, 2)
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("day")
    measured = health(embedded)
    assert (measured.files_of_old_specs, measured.data_files) == (1, 3)
    assert {part.key.spec_id for part in measured.partitions} == {0, 1}
    # Its type went with the column.
    assert measured.partitions[0].key.values[0][0] == "day"


def test_a_table_without_a_snapshot_is_healthy(catalog: Catalog) -> None:
    made(catalog)
    measured = health(catalog)
    assert (measured.snapshot_id, measured.partitions, measured.file_sizes) == (None, (), {})
    assert (measured.small_file_share, measured.deleted_row_share) == (0.0, 0.0)
    assert measured.metadata_bytes == measured.metadata_json_bytes > 0


def test_a_metadata_file_that_no_log_names_is_lost(catalog: Catalog) -> None:
    table = made(catalog)
    append(table, 1)
    lost = f"{table.location()}/metadata/00001-0f1e2d3c.metadata.json"
    with table.io.new_output(lost).create() as file:
        file.write(b"{}")
    measured = health(catalog)
    assert measured.lost_metadata_files == (lost,)
    table.io.delete(lost)
    assert health(catalog).lost_metadata_files == ()


def test_branches_and_tags_but_main_are_told(embedded: Catalog) -> None:
    table = made(embedded)
    append(table, 1)
    first = table.current_snapshot()
    append(table, 1)
    with table.manage_snapshots() as change:
        change.create_branch(first.snapshot_id, "side")
        change.create_tag(table.current_snapshot().snapshot_id, "monthly")
    tag, branch = health(embedded).refs
    assert (tag.name, tag.is_branch, branch.name, branch.is_branch) == (
        "monthly",
        False,
        "side",
        True,
    )
    assert branch.snapshot_id == first.snapshot_id
    assert round(branch.committed_at.timestamp() * 1000) == first.timestamp_ms


MONDAY, TUESDAY, NO_PARTITION = (
    PartitionKey(1, (("day", "monday"),)),
    PartitionKey(1, (("day", "tuesday"),)),
    PartitionKey(0),
)


def file(content: str, partition: PartitionKey, sequence_number: int, **parts) -> LiveFile:
    path = parts.pop("path", f"{content}-{sequence_number}")
    return LiveFile(content, path, partition, 1, 100, sequence_number, 1, **parts)


@pytest.mark.parametrize(
    ("content", "partition", "sequence_number", "deletes_from", "dangles"),
    [
        # Data of Monday has the sequence number 5, in the file `five`; Tuesday has none.
        ("position deletes", MONDAY, 5, None, False),
        ("position deletes", MONDAY, 4, None, True),
        ("position deletes", MONDAY, 6, "five", False),
        ("position deletes", MONDAY, 4, "five", True),
        ("position deletes", MONDAY, 6, "rewritten", True),
        ("position deletes", TUESDAY, 6, None, True),
        ("equality deletes", MONDAY, 6, None, False),
        ("equality deletes", MONDAY, 5, None, True),
        ("equality deletes", TUESDAY, 6, None, True),
        # One without a partition counts for all.
        ("equality deletes", NO_PARTITION, 6, None, False),
        ("equality deletes", NO_PARTITION, 5, None, True),
        ("position deletes", NO_PARTITION, 6, None, True),
    ],
)
def test_a_delete_file_dangles_where_no_data_file_needs_it(
    content: str,
    partition: PartitionKey,
    sequence_number: int,
    deletes_from: str | None,
    dangles: bool,
) -> None:
    deletes = file(content, partition, sequence_number, deletes_from=deletes_from)
    data = [file("data", MONDAY, 5, path="five"), file("data", MONDAY, 9)]
    assert dangling_deletes([deletes, *data]) == ([deletes] if dangles else [])
