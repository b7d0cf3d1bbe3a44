"""A partition as a predicate that `where` takes; no JVM."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.upkeep.partition_filter import partition_predicate, partitions_predicate
from lakehouse.settings import Settings

COLUMNS = {
    "id": LongType(),
    "at": TimestamptzType(),
    "local": TimestampType(),
    "day": DateType(),
    "zip": StringType(),
    "code": BinaryType(),
    "a.b": StringType(),
}


@pytest.fixture
def partitioned(settings: Settings) -> Callable[..., Table]:
    """Make a table that is partitioned by a transform of a column for each that is named."""

    def make(*fields: tuple[str, str]) -> Table:
        columns = [
            NestedField(number, name, type_, required=False)
            for number, (name, type_) in enumerate(COLUMNS.items(), 1)
        ]
        numbers = list(COLUMNS)
        spec = PartitionSpec(
            *(
                PartitionField(
                    numbers.index(column) + 1,
                    1000 + number,
                    parse_transform(transform),
                    f"{column.replace('.', '_')}_{number}",
                )
                for number, (transform, column) in enumerate(fields)
            )
        )
        client = Catalog.of(settings).client
        client.create_namespace_if_not_exists("silver")
        return client.create_table("silver.sick", Schema(*columns), partition_spec=spec)

    return make


@pytest.mark.parametrize(
    ("transform", "column", "value", "predicate"),
    [
        ("identity", "zip", "o'k", r"`zip` = 'o\'k'"),
        ("identity", "id", None, "`id` IS NULL"),
        ("identity", "day", date(2024, 2, 1), "`day` = DATE '2024-02-01'"),
        (
            "identity",
            "local",
            datetime(2024, 2, 1, 3),
            "`local` = TIMESTAMP_NTZ '2024-02-01 03:00:00'",
        ),
        ("bucket[4]", "id", 3, "`lakehouse`.`system`.`bucket`(4, `id`) = 3"),
        ("truncate[2]", "zip", "10", "`lakehouse`.`system`.`truncate`(2, `zip`) = '10'"),
        (
            "year",
            "day",
            54,
            "`day` >= DATE '2024-01-01' AND `day` < DATE '2025-01-01'",
        ),
        (
            "month",
            "day",
            -1,
            "`day` >= DATE '1969-12-01' AND `day` < DATE '1970-01-01'",
        ),
        (
            "day",
            "at",
            date(2024, 2, 29),
            "`at` >= TIMESTAMP '2024-02-29 00:00:00+00:00' AND `at` < TIMESTAMP"
            " '2024-03-01 00:00:00+00:00'",
        ),
        (
            "hour",
            "local",
            25,
            "`local` >= TIMESTAMP_NTZ '1970-01-02 01:00:00' AND `local` < TIMESTAMP_NTZ"
            " '1970-01-02 02:00:00'",
        ),
        ("year", "day", 8029, "`day` >= DATE '9999-01-01'"),
        ("month", "day", 8030 * 12 - 1, "`day` >= DATE '9999-12-01'"),
        ("day", "day", date(9999, 12, 31), "`day` >= DATE '9999-12-31'"),
        ("identity", "code", b"\x00'\xff", "`code` = X'0027ff'"),
        ("truncate[1]", "code", b"", "`lakehouse`.`system`.`truncate`(1, `code`) = X''"),
        ("identity", "a.b", "x", "`a.b` = 'x'"),
    ],
)
def test_a_value_of_each_transform_is_a_predicate_of_its_column(
    partitioned: Callable[..., Table], transform: str, column: str, value: Any, predicate: str
) -> None:
    table = partitioned((transform, column))
    key = PartitionKey(0, ((f"{column.replace('.', '_')}_0", value),))

    assert partition_predicate("lakehouse", table, key) == predicate


def test_partitions_are_joined_each_once(partitioned: Callable[..., Table]) -> None:
    table = partitioned(("identity", "id"), ("identity", "zip"))
    first = PartitionKey(0, (("id_0", 1), ("zip_1", "a")))
    second = PartitionKey(0, (("id_0", 2), ("zip_1", None)))

    predicate = partitions_predicate("lakehouse", table, [first, second, first])

    assert predicate == "(`id` = 1 AND `zip` = 'a') OR (`id` = 2 AND `zip` IS NULL)"


def test_a_table_without_partitions_has_no_predicate(
    partitioned: Callable[..., Table],
) -> None:
    assert partitions_predicate("lakehouse", partitioned(), [PartitionKey(0)]) == ""


def test_a_bucket_is_left_out_where_an_old_spec_has_its_column(
    partitioned: Callable[..., Table],
) -> None:
    table = partitioned(("identity", "zip"))
    with table.update_spec() as update:
        update.remove_field("zip_0")
        update.add_field("zip", "bucket[4]", "zip_bucket")
        update.add_field("at", "day", "at_day")
    key = PartitionKey(1, (("zip_bucket", 3), ("at_day", date(2024, 1, 1))))

    predicate = partition_predicate("lakehouse", table, key)

    assert "bucket" not in predicate
    assert datetime(2024, 1, 1, tzinfo=UTC).isoformat(sep=" ") in predicate
