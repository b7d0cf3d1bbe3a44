"""Rows of each partition by the files of a commit, without a JVM."""

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC as WHOLE
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, NestedField, StringType

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.partition_metadata import added_rows, present_rows
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.position_deletes import delete_first_rows

pytestmark = pytest.mark.unit

FIRST, SECOND, THIRD = (date(2024, 1, day) for day in (1, 2, 3))
TWO_DAYS = Partitions(("2024-01-01", "2024-01-02"), ((FIRST, SECOND), (SECOND, THIRD)))
BY_VALUE = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "at"))


def table_of(settings: Settings, kind: Any, spec: PartitionSpec, *commits: list[Any]) -> Table:
    """A table of one column, and a commit for each list of its values."""
    catalog = Catalog.of(settings).client
    catalog.create_namespace_if_not_exists("t")
    table = catalog.create_table("t.t", Schema(NestedField(1, "at", kind)), partition_spec=spec)
    for values in commits:
        rows = [{"at": value} for value in values]
        table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))
    return table


def rows_of(table: Table, partitions: Partitions) -> dict[str, int] | None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return added_rows(table, snapshot.snapshot_id, "at", partitions)


def test_added_rows_are_counted_by_day(settings: Settings) -> None:
    before = [FIRST] * 7
    table = table_of(settings, DateType(), BY_VALUE, before, [FIRST, SECOND, SECOND])
    assert rows_of(table, TWO_DAYS) == {"2024-01-01": 1, "2024-01-02": 2}


def test_added_rows_are_counted_by_value(settings: Settings) -> None:
    regions = Partitions(("north", "south"))
    table = table_of(settings, StringType(), BY_VALUE, ["north", "south", "south"])
    assert rows_of(table, regions) == {"north": 1, "south": 2}


def test_an_unpartitioned_file_has_unknown_rows(settings: Settings) -> None:
    assert rows_of(table_of(settings, DateType(), WHOLE, [FIRST, FIRST]), TWO_DAYS) is None


def test_rows_of_other_days_do_not_count(settings: Settings) -> None:
    days = [date(2023, 12, 31), FIRST, THIRD, None]
    table = table_of(settings, DateType(), BY_VALUE, days)
    assert rows_of(table, TWO_DAYS) == {"2024-01-01": 1, "2024-01-02": 0}


def test_present_rows_are_those_of_all_commits(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [FIRST] * 7, [FIRST, SECOND, THIRD])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    rows = present_rows(table, snapshot.snapshot_id, "at", TWO_DAYS)
    assert rows == {"2024-01-01": 8, "2024-01-02": 1}


def test_present_rows_are_unknown_with_delete_files(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [FIRST, FIRST])
    (task,) = table.scan().plan_files()
    delete_first_rows(table, task.file.file_path)
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert present_rows(table, snapshot.snapshot_id, "at", TWO_DAYS) is None
