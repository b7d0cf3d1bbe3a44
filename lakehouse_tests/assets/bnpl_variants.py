"""`silver.bnpl_transactions_clean` as it might be declared at another time, rows for it, and
its readers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.assets.bronze.bnpl_transactions_raw import FEED
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published
from lakehouse.iceberg.rules.rows import RowRule
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.rule import Rule
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
    """Return the declaration without a column and the rules that read it."""
    columns = [column for column in table.columns if column.name != name]
    rules = [rule for rule in table.rules if name not in rule.columns]
    return replace(table, columns=columns, rules=rules, **parts)


def renamed(table: IcebergTable, old: str, new: str, **parts: Any) -> IcebergTable:
    """Return the declaration with another name of a column, in its rules too."""
    columns = [
        replace(column, name=new, renamed_from=old) if column.name == old else column
        for column in table.columns
    ]
    return replace(
        table, columns=columns, rules=[_about(rule, old, new) for rule in table.rules], **parts
    )


def transaction(number: int, day: date, **values: Any) -> Row:
    """Return a delivered row; values are as in a file, and columns that are not named have some
    value.
    """
    return {
        **DEFAULTS,
        "transaction_id": str(number),
        "transaction_date": str(day),
        "_source_row": number,
        **values,
    }


def publish(engine: Engine, table: IcebergTable, days: Sequence[date], *rows: Row) -> Published:
    """Write rows as those of some days."""
    done = write(engine, table, delivered(engine, table, rows), run=run_of(*days))
    assert isinstance(done, Published)
    return done


def delivered(
    engine: Engine, table: IcebergTable, rows: Sequence[Row]
) -> "Callable[..., DataFrame]":
    """Return a compute function that gives rows as text where the table casts them."""
    cast = {rule.columns[0] for rule in table.rules if rule.cast}
    schema = ", ".join(f"{column.name} {_type(column, cast)}" for column in table.columns)
    return rows_of(
        engine, schema, [[row.get(name) for name in table.column_names] for row in rows]
    )


def csv_text(rows: list[Row], lacking: str = "") -> str:
    """Return rows as a file of the feed, with all of its columns but one."""
    names = [name for name in FEED.column_names if name != lacking]
    lines = [names, *([row[name] or "" for name in names] for row in rows)]
    return "\n".join(map(",".join, lines)) + "\n"


def readers(engine: Engine, table: str, snapshot_id: int | None = None) -> dict[str, list[Row]]:
    """Return the rows that each engine reads, by transaction; of a snapshot by the names that
    it had.
    """
    name = engine.catalog.sql_name(table)
    version = f" VERSION AS OF {snapshot_id}" if snapshot_id else ""
    scan = engine.catalog.load(table).scan(snapshot_id=snapshot_id)
    found = scan.to_duckdb("t").execute("SET TimeZone='UTC'; SELECT * FROM t")
    names = [column[0] for column in found.description]
    return {
        "Spark": _sorted(
            [
                row.asDict(recursive=True)
                for row in engine.sql(f"SELECT * FROM {name}{version}").collect()
            ]
        ),
        "PyIceberg": _sorted(scan.to_arrow().to_pylist()),
        "DuckDB": _sorted([dict(zip(names, row, strict=True)) for row in found.fetchall()]),
    }


def _about(rule: Rule, old: str, new: str) -> Rule:
    if old not in rule.columns:
        return rule
    renamed = replace(
        rule,
        name=rule.name.replace(old, new),
        columns=tuple(new if name == old else name for name in rule.columns),
    )
    if isinstance(renamed, RowRule):
        return replace(renamed, violated_by=renamed.violated_by.replace(old, new))
    return renamed


def _type(column: Column, cast: set[str]) -> str:
    return "string" if column.name in cast else column.type


def _sorted(rows: list[Row]) -> list[Row]:
    for row in rows:
        for moment in ("created_at", "_ingested_at"):
            # Engines give a moment with a time zone of theirs, or without one.
            row.pop(moment, None)
    return sorted(rows, key=lambda row: row["transaction_id"])
