"""Rows of snapshots whose position deletes outlived their data files, without a JVM."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

from lakehouse.errors import TableDamaged
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import Snapshot, history_of
from lakehouse.iceberg.read.pinned_inputs import pin_since
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.position_deletes import delete_first_rows

NAME = "silver.orders"
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", LongType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))


@pytest.fixture
def table(settings: Settings) -> Table:
    catalog = Catalog.of(settings).client
    catalog.create_namespace_if_not_exists("silver")
    table = catalog.create_table(NAME, SCHEMA, partition_spec=BY_DAY)
    for _ in range(2):
        rows = [{"id": at, "day": day} for day in (1, 2) for at in range(3)]
        table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))
    return table


def paths_of(table: Table, day: int) -> list[str]:
    tasks = table.scan(f"day = {day}").plan_files()
    return sorted(task.file.file_path for task in tasks)


def main(table: Table) -> Snapshot:
    return history_of(NAME, table.refresh()).main


def rows_read(table: Table) -> int:
    return len(table.refresh().scan().to_arrow())


def replace_file(table: Table, path: str, rows: int) -> None:
    """Put a file of some rows of day 2 in the place of another."""
    file = next(task.file for task in table.scan().plan_files() if task.file.file_path == path)
    with table.transaction() as change, change.update_snapshot().overwrite() as overwrite:
        overwrite.delete_data_file(file)
    table.append(pa.table({"id": list(range(rows)), "day": [2] * rows}))


def test_position_deletes_are_taken_off_by_the_summary(table: Table) -> None:
    delete_first_rows(table, *paths_of(table, 1))
    assert main(table).rows == rows_read(table) == 10
    assert main(table).count_live_rows is None


def test_position_deletes_of_a_partition_that_went_are_not_taken_off(table: Table) -> None:
    delete_first_rows(table, *paths_of(table, 1))
    table.delete("day = 1")
    assert main(table).count("total-position-deletes") == 2
    assert main(table).rows == rows_read(table) == 6


def test_positions_in_the_one_of_two_files_that_went_are_not_taken_off(table: Table) -> None:
    first, second = paths_of(table, 2)
    delete_first_rows(table, first, second)
    replace_file(table, first, rows=5)
    assert main(table).rows == rows_read(table) == 6 + 5 + 2


def test_rows_are_counted_where_the_commits_of_the_deletes_expired(table: Table) -> None:
    delete_first_rows(table, *paths_of(table, 1))
    table.delete("day = 1")
    table.append(pa.table({"id": [7], "day": [2]}))
    *earlier, _ = table.snapshots()
    ids = [snapshot.snapshot_id for snapshot in earlier]
    table.maintenance.expire_snapshots().by_ids(ids).commit()
    assert main(table).rows == rows_read(table) == 7


def test_a_table_whose_manifests_are_missing_is_damaged(table: Table) -> None:
    delete_first_rows(table, *paths_of(table, 1))
    table.delete("day = 1")
    for manifest in Path(table.location().removeprefix("file://")).glob("metadata/*.avro"):
        manifest.unlink()
    with pytest.raises(TableDamaged, match=NAME):
        _ = main(table).rows


def test_rows_are_counted_if_another_tool_wrote_no_totals(table: Table) -> None:
    for snapshot in table.metadata.snapshots:
        snapshot.summary.additional_properties.clear()
    history = history_of(NAME, table)
    first, last = sorted(history.snapshots.values(), key=lambda snapshot: snapshot.rows)
    assert (first.rows, last.rows, last.is_empty) == (6, 12, False)
    assert pin_since(history, first.snapshot_id, last.snapshot_id).rows is None
