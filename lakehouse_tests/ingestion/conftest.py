"""Two feeds, an inbox in a temporary folder, and the collection of its files."""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.staging.staged_rows import HASH_LENGTH
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.tables.feed import Feed, FeedColumn

FRUITS = Feed("fruits", ["id", "fruit", "berry"], "bronze.raw_fruits")
CUSTOMERS = Feed(
    "customers",
    [
        FeedColumn("customer_id"),
        FeedColumn("email", personal=True),
        FeedColumn("region", optional=True),
    ],
    "bronze.raw_customers",
    subject="customer_id",
)


@dataclass
class Inbox:
    store: LocalObjectStore
    feed: Feed

    def put(self, name: str, content: str | bytes, *, second: int | None = None) -> Path:
        path = self.store.root / self.feed.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(
            gzip.compress(raw)
            if name.lower().endswith(".gz") and isinstance(content, str)
            else raw
        )
        if second is not None:
            os.utime(path, (1_700_000_000 + second,) * 2)
        return path

    def names(self) -> list[str]:
        return files(self.store, self.feed.inbox)

    def look(self) -> "Taken":
        with lock_feed(self.feed, self.store.root) as ingest:
            delivery = collect_files(self.store, ingest)
            return Taken(delivery, staged_rows(delivery))


@dataclass
class Taken:
    delivery: Delivery
    rows: list[dict]

    def values(self, *columns: str) -> list[tuple]:
        return [tuple(row[column] for column in columns) for row in self.rows]

    @property
    def reason(self) -> str:
        (file,) = self.delivery.rejected
        return str(file.why)


def files(store: LocalObjectStore, prefix: str) -> list[str]:
    folder = store.root / prefix
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def staged_rows(delivery: Delivery) -> list[dict]:
    from pyarrow import parquet

    rows = []
    for file in delivery.files:
        path = delivery.ingest.staging / "rows" / file.name
        for row in parquet.read_table(path).to_pylist():
            rows.append({**row, "_source_sha256": file.name[:HASH_LENGTH]})
    return rows


@pytest.fixture
def store(home: Path) -> LocalObjectStore:
    return LocalObjectStore(home, settle_seconds=0)


@pytest.fixture
def inbox(store: LocalObjectStore) -> Inbox:
    return Inbox(store, FRUITS)


@pytest.fixture
def inbox_of(store: LocalObjectStore) -> Callable[[Feed], Inbox]:
    return lambda feed: Inbox(store, feed)
