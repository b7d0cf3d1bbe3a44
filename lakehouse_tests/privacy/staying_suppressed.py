"""A small lakehouse of visits, computed by tables of every write mode from one feed, and a person
who is erased from it by the parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import Input, incremental, latest, versions_of
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.land import Landing, land
from lakehouse.privacy.delivered_files import rewrite_files
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.holders import row_moments
from lakehouse.privacy.suppressed_people import (
    SuppressedPerson,
    add_suppressed,
    read_suppressed,
)
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.person import Person, person_hmac
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
    Versions,
)

FEED = Feed(
    "visits",
    ["visit", "customer_id", "shop", "seen_at"],
    "bronze.visits",
    subject="customer_id",
    moment="seen_at",
)
VISITS = bronze_table(FEED, "Visits as delivered.", partitioning=["shop"])
_TYPED = [
    Column("visit", "bigint"),
    Column("customer_id", "bigint"),
    Column("shop", "string"),
    Column("seen_at", "timestamp"),
]
_SOURCE = [
    Column("_source_file", "string"),
    Column("_source_sha256", "string"),
    Column("_source_row", "bigint"),
]
_RULES = [
    castable("visit", "bigint"),
    castable("customer_id", "bigint"),
    castable("seen_at", "timestamp"),
]


def _visits(name: str, write_mode: Any, **parts: Any) -> IcebergTable:
    columns = [*_TYPED, *_SOURCE]
    return IcebergTable(
        name, "Visits.", columns, write=write_mode, rules=_RULES, subject="customer_id", **parts
    )


APPENDED = _visits("silver.appended", Append())
MERGED = _visits(
    "silver.merged", Merge(on=["visit"]), versions=Versions("visit", ("seen_at", "_source_row"))
)
OVERWRITTEN = _visits("silver.overwritten", Overwrite())
BY_SHOP = _visits(
    "silver.by_shop",
    OverwritePartitions("shop"),
    partitioning=["shop"],
    versions=Versions("visit", ("seen_at", "_source_row")),
)
SUMS = IcebergTable(
    "gold.sums",
    "How many visits a shop has.",
    [Column("shop", "string"), Column("visits", "bigint")],
    write=Overwrite(),
)
INPUTS: Mapping[IcebergTable, Input] = {
    APPENDED: incremental(VISITS.name),
    MERGED: versions_of(VISITS.name),
    OVERWRITTEN: latest(VISITS.name),
    BY_SHOP: versions_of(VISITS.name, by="shop"),
    SUMS: latest(MERGED.name),
}
TABLES = {
    one.name: one
    for table in (VISITS, *INPUTS)
    for one in (table, table.quarantine)
    if one is not None
}
SOURCES = {table.name: {given.table} for table, given in INPUTS.items()}
ANN = Person("customer_id", frozenset({"7"}))
REQUEST = "R-1"
HEADER = "visit,customer_id,shop,seen_at\n"


@dataclass
class Visits:
    """The lakehouse of a home."""

    engine: Engine
    settings: Settings

    @property
    def suppression(self) -> SuppressionList:
        """The erased people."""
        read = partial(read_suppressed, self.settings)
        return SuppressionList(read, TABLES, {}, row_moments(TABLES, [FEED], SOURCES))

    def deliver(self, name: str, *rows: str) -> Landing:
        """Put a file into the inbox and land it."""
        path = self.settings.home / FEED.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
        return land(
            self.engine,
            FEED,
            VISITS,
            open_store(self.settings),
            self.settings.home,
            suppression=self.suppression,
        )

    def compute(self, *tables: IcebergTable, in_full: bool = False) -> dict[str, Outcome]:
        """Compute some tables, all where none is named."""
        return {table.name: self._compute(table, in_full=in_full) for table in tables or INPUTS}

    def _compute(self, table: IcebergTable, *, in_full: bool) -> Outcome:
        def computed(given):
            return given.groupBy("shop").count().withColumnRenamed("count", "visits")

        def as_delivered(given):
            return given.select(*(column.name for column in (*_TYPED, *_SOURCE)))

        return write(
            self.engine,
            table,
            computed if table is SUMS else as_delivered,
            {"given": INPUTS[table]},
            Run(
                "",
                Partitions(("a", "b", "c")) if table is BY_SHOP else None,
                full_recompute=in_full,
                reads_everything=in_full,
            ),
            suppression=self.suppression,
        )

    def erase(self) -> None:
        """Erase Ann from all tables and delivered files."""
        self.add_ann()
        for table in TABLES.values():
            delete_rows(self.engine, table, [ANN], REQUEST)
        home = self.settings.home
        rewrite_files(open_store(self.settings), FEED, [ANN], REQUEST, home=home)

    def add_ann(self) -> None:
        """Add Ann to the suppression list."""
        digest = self.ann_hmac
        add_suppressed(
            self.settings, [SuppressedPerson("customer_id", digest, datetime.now(UTC))]
        )

    @property
    def ann_hmac(self) -> str:
        """What Ann stands as in the suppression list."""
        return person_hmac(hmac_key(self.settings), "customer_id", "7")

    def rows(self, table: IcebergTable) -> list[tuple]:
        """The rows that readers see, without where they came from."""
        own = [
            column.name
            for column in table.columns
            if column.name in {"visit", "customer_id", "shop", "seen_at", "visits"}
        ]
        found = self.engine.catalog.load(table.name).scan(selected_fields=own).to_arrow()
        rows = found.select(own).to_pylist()
        return sorted(tuple(map(str, row.values())) for row in rows)

    def everything(self) -> dict[str, list[tuple]]:
        """The rows of all tables that there are."""
        return {
            name: self.rows(table)
            for name, table in TABLES.items()
            if self.engine.catalog.has(name)
        }

    def set_back(self, table: IcebergTable, snapshot_id: int) -> None:
        """Set a table back by SQL."""
        catalog = self.engine.catalog.name
        self.engine.sql(
            f"CALL {catalog}.system.set_current_snapshot('{table.name}', {snapshot_id})"
        )

    def head(self, table: IcebergTable) -> int:
        """The snapshot that readers see."""
        main = read_history(self.engine, table.name).main
        assert main is not None
        return main.snapshot_id
