"""The checksum of rows ignores their order and files, and depends on every value."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.copy.copy_table import RowChecksum, row_checksum
from lakehouse.settings import Settings

COLUMNS = pa.schema(
    {
        "id": pa.int32(),
        "other": pa.int64(),
        "text": pa.string(),
        "more": pa.string(),
        "amount": pa.decimal128(10, 2),
        "rate": pa.float64(),
        "is_new": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "marks": pa.map_(pa.string(), pa.int32()),
    }
)
ROW = {
    "id": 1,
    "other": 2,
    "text": "a",
    "more": "b",
    "amount": Decimal("1.50"),
    "rate": 0.5,
    "is_new": True,
    "day": date(2026, 3, 1),
    "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "raw": b"\x00",
    "tags": ["x", "y"],
    "marks": [("m", 1)],
}
EMPTY = dict.fromkeys(ROW)
OTHERS = {
    "id": {"id": 3},
    "columns changed places": {"id": 2, "other": 1},
    "texts changed places": {"text": "b", "more": "a"},
    "a text that reads like NULL": {"text": "None"},
    "amount": {"amount": Decimal("1.51")},
    "rate": {"rate": -0.5},
    "no rate": {"rate": float("nan")},
    "flag": {"is_new": False},
    "day": {"day": date(2026, 3, 2)},
    "moment": {"at": datetime(2026, 3, 1, 12, 0, 0, 1, UTC)},
    "bytes": {"raw": b"\x01"},
    "order within a list": {"tags": ["y", "x"]},
    "value of a map": {"marks": [("m", 2)]},
}


@pytest.fixture
def catalog(settings: Settings) -> Catalog:
    catalog = Catalog.of(settings)
    catalog.client.create_namespace("silver")
    return catalog


def checksum(catalog: Catalog, *files: list[dict]) -> RowChecksum:
    table = catalog.client.create_table(f"silver.t{uuid4().hex}", COLUMNS)
    for rows in files:
        table.append(pa.Table.from_pylist(rows, COLUMNS))
    snapshot_id = table.metadata.current_snapshot_id
    return row_checksum(table, snapshot_id)


def test_order_and_files_do_not_count(catalog: Catalog) -> None:
    other = ROW | {"id": 7, "text": None}

    whole = checksum(catalog, [ROW, other, EMPTY])

    assert whole.rows == 3
    assert checksum(catalog, [EMPTY], [other, ROW]) == whole


@pytest.mark.parametrize("changed", OTHERS)
def test_any_other_value_counts(catalog: Catalog, changed: str) -> None:
    assert checksum(catalog, [ROW, EMPTY]) != checksum(catalog, [ROW | OTHERS[changed], EMPTY])


@pytest.mark.parametrize("column", ROW)
def test_null_is_a_value_of_its_own(catalog: Catalog, column: str) -> None:
    assert checksum(catalog, [ROW]) != checksum(catalog, [ROW | {column: None}])


def test_a_row_that_is_there_twice_counts_twice(catalog: Catalog) -> None:
    other = ROW | {"id": 7}

    assert checksum(catalog, [ROW, ROW, other]) != checksum(catalog, [ROW, other, other])
