"""Rows of each partition by the files of a commit, without a JVM."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC as WHOLE
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, NestedField, StringType, TimestamptzType

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.partition_rows import added_rows, present_rows
from lakehouse.iceberg.metadata.write_context import Partitions
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


def test_each_day_has_the_rows_that_the_commit_added_to_it(settings: Settings) -> None:
    before = [FIRST] * 7
    table = table_of(settings, DateType(), BY_VALUE, before, [FIRST, SECOND, SECOND])
    assert rows_of(table, TWO_DAYS) == {"2024-01-01": 1, "2024-01-02": 2}


def test_a_day_without_rows_has_none(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [SECOND])
    assert rows_of(table, TWO_DAYS) == {"2024-01-01": 0, "2024-01-02": 1}


def test_days_of_a_time_zone_are_told_by_the_moments_of_a_file(settings: Settings) -> None:
    begin, middle, end = (datetime(2024, 1, day, 16, tzinfo=UTC) for day in (1, 2, 3))
    local = Partitions(("2024-01-02", "2024-01-03"), ((begin, middle), (middle, end)))
    within = [datetime(2024, 1, 1, 17, tzinfo=UTC), datetime(2024, 1, 2, 15, tzinfo=UTC)]
    table = table_of(settings, TimestamptzType(), WHOLE, within)
    assert rows_of(table, local) == {"2024-01-02": 2, "2024-01-03": 0}
    table.append(pa.table({"at": pa.array([within[1], middle], pa.timestamp("us", "UTC"))}))
    assert rows_of(table, local) is None


def test_values_are_partitions_too(settings: Settings) -> None:
    regions = Partitions(("north", "south"))
    table = table_of(settings, StringType(), BY_VALUE, ["north", "south", "south"])
    assert rows_of(table, regions) == {"north": 1, "south": 2}


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        (WHOLE, [FIRST, SECOND]),
        (WHOLE, [FIRST, None]),
        (WHOLE, [date(2023, 12, 31), FIRST]),
        (WHOLE, [SECOND, THIRD]),
    ],
)
def test_a_file_that_is_not_of_one_partition_tells_nothing(
    settings: Settings, spec: PartitionSpec, values: list[date | None]
) -> None:
    assert rows_of(table_of(settings, DateType(), spec, values), TWO_DAYS) is None


def test_rows_of_other_days_count_for_none(settings: Settings) -> None:
    days = [date(2023, 12, 31), FIRST, THIRD, None]
    table = table_of(settings, DateType(), BY_VALUE, days)
    assert rows_of(table, TWO_DAYS) == {"2024-01-01": 1, "2024-01-02": 0}


def test_a_snapshot_has_the_rows_of_all_commits(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [FIRST] * 7, [FIRST, SECOND, THIRD])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    rows = present_rows(table, snapshot.snapshot_id, "at", TWO_DAYS)
    assert rows == {"2024-01-01": 8, "2024-01-02": 1}


def test_what_delete_files_take_off_is_not_told(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [FIRST, FIRST])
    (task,) = table.scan().plan_files()
    delete_first_rows(table, task.file.file_path)
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert present_rows(table, snapshot.snapshot_id, "at", TWO_DAYS) is None
