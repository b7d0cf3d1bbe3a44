"""A small lakehouse to erase people from: tables, delivered files, and what else lies in a home.

No test on it starts a JVM.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lakehouse.assets.audit.gdpr_actions import TABLE as AUDIT
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.referenced_files import named_files
from lakehouse.iceberg.upkeep.expire_snapshots import expiring
from lakehouse.privacy.audit_chain import verify_chain
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.identity import Named
from lakehouse.privacy.run_erasure import erase
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed, FeedColumn
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.privacy.small_lakehouse import (
    FRUITS,
    MAILS,
    ORDERS,
    PROFILES,
    RAW,
    SOURCES,
    TABLES,
    People,
    declared,
    erasable_of,
    no_spark,
)

FEED = Feed(
    "orders",
    [FeedColumn("customer_id"), FeedColumn("customer_email", personal=True), "amount"],
    RAW.name,
    subject="customer_id",
)
SUMS = declared("gold.sums", Column("orders", "bigint"), on_erasure="keep")
ANNA = "anna.example@example.org"
ANNA_BEFORE = "anna.before@example.org"
HERS = "7001234567"
SHARED = "family@example.org"
NAMED = [Named("customer_id", HERS)]
HEADER = "customer_id,customer_email,amount\n"
DELIVERED = f"{HEADER}{HERS},{ANNA},1\n8001234567,ben@example.org,2\n"
WITHOUT = f"{HEADER}8001234567,ben@example.org,2\n"


@dataclass
class Home:
    """A home that holds Anna, Ben, and two who share an address."""

    settings: Settings
    tables: dict[str, IcebergTable] = field(default_factory=lambda: {**TABLES, SUMS.name: SUMS})

    def fill(self) -> None:
        """Write all that is there."""
        people = People(self.engine, self.erasable.subjects)
        people.add(
            RAW, (f" +00{HERS} ", ANNA_BEFORE, "1"), ("8001234567", "ben@example.org", "2")
        )
        people.add(ORDERS, (int(HERS), ANNA, 1.0), (8001234567, "ben@example.org", 2.0))
        people.add(ORDERS, (9001234567, SHARED, 3.0), (9101234567, SHARED, 4.0))
        loaded = self.engine.catalog.load(ORDERS.name)
        assert loaded.current_snapshot() is not None
        loaded.manage_snapshots().create_tag(
            loaded.current_snapshot().snapshot_id, "month_end"
        ).commit()
        people.add(PROFILES, (int(HERS), 1), (8001234567, 1))
        people.add(MAILS, (ANNA, 1), (SHARED, 2), ("ben@example.org", 3))
        people.add(FRUITS, ("apple", "pear"))
        people.add(SUMS, (4,))
        for key in ("inbox/orders/new.csv", "archive/orders/2026-11-01/old-0123456789ab.csv"):
            self.write(key, DELIVERED)
        self.write("logs/app.log", f"customer_id={HERS} failed: {ANNA}\nbread and butter\n")

    @property
    def engine(self) -> Engine:
        """An engine where no Spark can be had."""
        return Engine(
            Catalog.of(self.settings),
            no_spark,  # type: ignore[arg-type]
            self.settings.lock_dir,
            masking_key=b"testing",
        )

    @property
    def erasable(self) -> Erasable:
        """What there is to erase from."""
        sources = {**SOURCES, SUMS.name: {ORDERS.name}}
        feeds = {FEED.name: FEED}
        return erasable_of(self.settings, self.engine, self.tables, sources, feeds)

    def erase(self, *named: Named, request: str = "R-1", **how: Any) -> Erasure:
        """Erase people; with the request alone it is carried on."""
        return erase(self.erasable, request, named, How("me", **how))

    def lose_a_write(self) -> None:
        """Leave a file with Anna in a table's location that no metadata names, as a write does
        whose commit was lost.
        """
        location = self.engine.catalog.load(ORDERS.name).location().removeprefix("file://")
        (Path(location) / "data" / "lost.csv").write_text(DELIVERED)

    def write(self, key: str, text: str) -> None:
        """Write a file of the home."""
        file = self.settings.home / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, key: str) -> str:
        """Return the text of a file of the home."""
        return (self.settings.home / key).read_text()

    def rows(self, table: IcebergTable) -> list[tuple[Any, ...]]:
        """Return the rows that readers see of a table, in order."""
        rows = self.engine.catalog.load(table.name).scan().to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    def files_with(self, *values: str) -> list[str]:
        """Return the files that have a value among their bytes as they are stored."""
        found = []
        for file in sorted(self.settings.home.rglob("*")):
            if file.is_file() and any(value.encode() in file.read_bytes() for value in values):
                found.append(str(file.relative_to(self.settings.home)))
        return found

    def listing(self) -> dict[str, bytes]:
        """Return all that the home holds."""
        return {
            str(file.relative_to(self.settings.home)): file.read_bytes()
            for file in _files(self.settings.home)
        }

    def actions(self) -> list[str]:
        """Return what the audit table says was done, in order; its chain is whole."""
        erasable = self.erasable
        assert verify_chain(self.settings, erasable.engine, AUDIT).is_whole
        rows = erasable.engine.catalog.load(AUDIT.name).scan().to_arrow().to_pylist()
        return [row["action"] for row in sorted(rows, key=lambda row: row["sequence"])]

    def with_keeping(self, table: IcebergTable) -> "Home":
        """Return the same with another declaration of a table."""
        return replace(self, tables={**self.tables, table.name: table})


def on_a_cluster(home: Home) -> Home:
    """Return a home whose Spark is on other machines, which somebody else has to see to."""
    return replace(home, settings=replace(home.settings, spark_master="spark://cluster:7077"))


def expire_without_spark(engine: Engine, table: str, older_than: datetime, keep: int) -> int:
    """Expire as Spark's procedure does, by PyIceberg: snapshots, then files that none names."""
    loaded = engine.catalog.load(table)
    before = named_files(loaded)
    loaded.maintenance.expire_snapshots().by_ids(
        sorted(expiring(loaded, older_than, keep))
    ).commit()
    after = named_files(engine.catalog.load(table))
    removed = [file.path for key, file in before.items() if key not in after]
    for path in removed:
        loaded.io.delete(path)
    return len(removed)


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file
