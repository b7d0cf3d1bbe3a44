"""A small lakehouse that holds people, made by PyIceberg: delivered text, typed rows, a quarantine,
and a table without a subject. No test here starts a JVM.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.iceberg.evolve.creation import ensure_directly
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.holders import Subject, find_subjects
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable


def declared(name: str, *columns: Column | str, **parts: Any) -> IcebergTable:
    """Declare a table of text, unless a column says otherwise."""
    typed = [Column(one, "string") if isinstance(one, str) else one for one in columns]
    return IcebergTable(name, "", typed, write=Append(once_by=()), **parts)


def personal(name: str, **parts: Any) -> Column:
    return Column(name, "string", personal=True, **parts)


RAW = declared(
    "bronze.raw_orders",
    "customer_id",
    personal("customer_email"),
    "amount",
    subject="customer_id",
)
ORDERS = declared(
    "silver.orders",
    Column("customer_id", "bigint"),
    personal("email", renamed_from="customer_email"),
    Column("amount", "double"),
    subject="customer_id",
)
PROFILES = declared(
    "gold.profiles",
    Column("client", "bigint", renamed_from="customer_id"),
    Column("orders", "bigint"),
    subject="client",
)
MAILS = declared(
    "gold.mails", "email", Column("sent", "bigint"), no_subject="By address alone."
)
FRUITS = declared("silver.fruits", "customer_id", "email")
TABLES = {one.name: one for one in (RAW, ORDERS, PROFILES, MAILS, FRUITS)}
SOURCES = {
    ORDERS.name: {RAW.name},
    PROFILES.name: {ORDERS.name},
    MAILS.name: {ORDERS.name},
}


def no_spark() -> None:
    raise AssertionError("Spark was started")


@dataclass(frozen=True)
class People:
    """Tables that hold people, and their rows."""

    engine: Engine
    subjects: tuple[Subject, ...]

    def add(self, table: IcebergTable, *rows: Sequence[Any]) -> None:
        """Append rows in one commit."""
        ensure_directly(self.engine, table)
        loaded = self.engine.catalog.load(table.name)
        schema = loaded.schema().as_arrow()
        loaded.append(
            pa.Table.from_pylist(
                [dict(zip(schema.names, row, strict=True)) for row in rows], schema
            )
        )

    def rows(self, table: IcebergTable) -> list[Mapping[str, Any]]:
        """Return the rows that readers see."""
        return self.engine.catalog.load(table.name).scan().to_arrow().to_pylist()


@pytest.fixture
def engine(settings: Settings) -> Engine:
    return Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")  # type: ignore[arg-type]


@pytest.fixture
def people(engine: Engine) -> People:
    """Customers 7, 8 and 9; 8 and 9 share an address, and 7 had another one."""
    found = People(engine, find_subjects(TABLES, SOURCES))
    found.add(
        RAW,
        (" +007 ", "seven@old.example", "1"),
        ("7", " Seven@example.org", "2"),
        ("8", "shared@example.org", "3"),
        ("9", "shared@example.org", "4"),
        ("", "seven@example.org", "lost"),
        ("77", "other@example.org", "5"),
    )
    found.add(ORDERS, (7, "seven@old.example", 1.0))
    found.engine.catalog.load(ORDERS.name).delete("customer_id = 7")
    found.add(
        ORDERS,
        (7, "Seven@example.org", 2.0),
        (8, "shared@example.org", 3.0),
        (9, "shared@example.org", 4.0),
        (77, "other@example.org", 5.0),
    )
    found.add(PROFILES, (7, 2), (8, 1), (9, 1), (77, 1))
    found.add(
        MAILS,
        ("SEVEN@example.org", 1),
        ("shared@example.org", 2),
        ("alone@example.org", 3),
    )
    found.add(FRUITS, ("7", "seven@example.org"))
    return found
