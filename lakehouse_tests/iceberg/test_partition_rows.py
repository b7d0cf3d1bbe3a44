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


def last_snapshot(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.mark.parametrize(
    ("kind", "spec", "partitions", "commits", "expected"),
    [
        (
            DateType(),
            BY_VALUE,
            TWO_DAYS,
            [[FIRST] * 7, [FIRST, SECOND, SECOND]],
            {"2024-01-01": 1, "2024-01-02": 2},
        ),
        (
            DateType(),
            BY_VALUE,
            TWO_DAYS,
            [[date(2023, 12, 31), FIRST, THIRD, None]],
            {"2024-01-01": 1, "2024-01-02": 0},
        ),
        (
            StringType(),
            BY_VALUE,
            Partitions(("north", "south")),
            [["north", "south", "south"]],
            {"north": 1, "south": 2},
        ),
        (DateType(), WHOLE, TWO_DAYS, [[FIRST, FIRST]], None),
    ],
    ids=["by day", "other days", "by value", "unpartitioned"],
)
def test_added_rows_are_counted_by_partition(
    settings: Settings,
    kind: Any,
    spec: PartitionSpec,
    partitions: Partitions,
    commits: list[list[Any]],
    expected: dict[str, int] | None,
) -> None:
    table = table_of(settings, kind, spec, *commits)
    assert added_rows(table, last_snapshot(table), "at", partitions) == expected


def test_present_rows_are_those_of_all_commits(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [FIRST] * 7, [FIRST, SECOND, THIRD])
    rows = present_rows(table, last_snapshot(table), "at", TWO_DAYS)
    assert rows == {"2024-01-01": 8, "2024-01-02": 1}


def test_present_rows_are_unknown_with_delete_files(settings: Settings) -> None:
    table = table_of(settings, DateType(), BY_VALUE, [FIRST, FIRST])
    (task,) = table.scan().plan_files()
    delete_first_rows(table, task.file.file_path)
    assert present_rows(table, last_snapshot(table), "at", TWO_DAYS) is None
