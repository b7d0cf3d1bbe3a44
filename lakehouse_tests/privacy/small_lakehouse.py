"""A small lakehouse that holds people, made by PyIceberg: delivered text, typed rows, a quarantine,
and a table without a subject. No test here starts a JVM.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lakehouse.assets.audit.gdpr_actions import TABLE as AUDIT
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.holders import Subject, find_subjects
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed
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
    "gold.mails",
    "email",
    Column("sent", "bigint"),
    no_subject="By address alone.",
    # Nothing here could compute it anew.
    on_erasure="keep",
)
FRUITS = declared("silver.fruits", "customer_id", "email")
TABLES = {one.name: one for one in (RAW, ORDERS, PROFILES, MAILS, FRUITS)}
SOURCES = {ORDERS.name: {RAW.name}, PROFILES.name: {ORDERS.name}, MAILS.name: {ORDERS.name}}


def no_spark() -> None:
    raise AssertionError("Spark was started")


def erasable_of(
    settings: Settings,
    engine: Engine,
    tables: Mapping[str, IcebergTable],
    sources: Mapping[str, Collection[str]],
    feeds: Mapping[str, Feed] = MappingProxyType({}),
) -> Erasable:
    """Return some tables as the input of an erasure that recomputes none of them."""
    return Erasable(
        settings,
        engine,
        {**tables, AUDIT.name: AUDIT},
        feeds,
        find_subjects(tables, sources),
        sources,
        {},
        AUDIT,
        no_spark,  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class People:
    """Tables that hold people, and their rows."""

    engine: Engine
    subjects: tuple[Subject, ...]

    def add(self, table: IcebergTable, *rows: Sequence[Any]) -> None:
        """Append rows in one commit."""
        ensure(self.engine, table)
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
