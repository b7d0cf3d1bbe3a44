"""Other declarations of `silver.bnpl_transactions_clean`, and rows for them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.assets.bronze.bnpl_transactions_raw import FEED
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.iceberg.declarations import rows_of, run_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = dict[str, Any]
MONDAY, TUESDAY, WEDNESDAY, FRIDAY = (date(2024, 1, day) for day in (1, 2, 3, 5))
DEFAULTS: Row = {
    "customer_id": "1",
    "merchant_id": "m1",
    "merchant_category": "grocery",
    "amount": "10.00",
    "currency": "MYR",
    "installments": "3",
    "payment_method": None,
    "status": "APPROVED",
    "created_at": "2024-01-01 08:00:00",
    "customer_email": "a@example.org",
    "region": "north",
    "_source_file": "a.csv",
    "_source_sha256": "sha-a",
    "_ingested_at": datetime(2024, 2, 1, tzinfo=UTC),
}


def without(table: IcebergTable, name: str, **parts: Any) -> IcebergTable:
    columns = [column for column in table.columns if column.name != name]
    rules = [rule for rule in table.rules if name not in rule.columns]
    return replace(table, columns=columns, rules=rules, **parts)


def transaction(number: int, day: date, **values: Any) -> Row:
    return {
        **DEFAULTS,
        "transaction_id": str(number),
        "transaction_date": str(day),
        "_source_row": number,
        **values,
    }


def publish(engine: Engine, table: IcebergTable, days: Sequence[date], *rows: Row) -> Published:
    done = write(engine, table, delivered(engine, table, rows), run=run_of(*days))
    assert isinstance(done, Published)
    return done


def delivered(
    engine: Engine, table: IcebergTable, rows: Sequence[Row]
) -> "Callable[..., DataFrame]":
    cast = {rule.columns[0] for rule in table.rules if rule.cast}
    schema = ", ".join(f"{column.name} {_type(column, cast)}" for column in table.columns)
    return rows_of(
        engine, schema, [[row.get(name) for name in table.column_names] for row in rows]
    )


def csv_text(rows: list[Row], lacking: str = "") -> str:
    names = [name for name in FEED.column_names if name != lacking]
    lines = [names, *([row[name] or "" for name in names] for row in rows)]
    return "\n".join(map(",".join, lines)) + "\n"


def _type(column: Column, cast: set[str]) -> str:
    return "string" if column.name in cast else column.type
