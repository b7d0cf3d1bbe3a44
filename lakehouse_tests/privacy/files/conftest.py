"""Delivered files of a feed of customers, in a folder or a bucket, and people in them."""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.privacy.delivered_files import FilesRewritten, rewrite_files
from lakehouse.settings import Settings
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed, FeedColumn
from lakehouse.tables.person import Person
from lakehouse_tests.ingestion.conftest import staged_rows

CUSTOMERS = Feed(
    "customers",
    [
        FeedColumn("customer_id"),
        FeedColumn("email", personal=True),
        FeedColumn("made_at", optional=True),
    ],
    "bronze.raw_customers",
    subject="customer_id",
    moment="made_at",
)
ANN = Person("customer_id", frozenset({"7"}), {"email": frozenset({"ann@example.com"})})
HEADER = "customer_id,email\n"
ANNS = "7,ann@example.com\n"
BOBS, CYS = "8,bob@example.com\n", "9,cy@example.com\n"
MIXED = HEADER + BOBS + ANNS + CYS
WITHOUT = HEADER + BOBS + CYS
ARCHIVED = "archive/customers/2026-11-01/"


def sha256(content: str | bytes) -> str:
    """The hash of a content."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


@dataclass
class Files:
    """The delivered files of one feed in a store."""

    store: ObjectStore
    home: Path
    feed: Feed = CUSTOMERS
    made: Path = field(default_factory=Path)

    def put(self, key: str, content: str | bytes) -> str:
        """Put a file under a key; `{}` in it stands for a part of the hash."""
        raw = content.encode() if isinstance(content, str) else content
        key = key.format(sha256(raw)[:12])
        self.made.write_bytes(raw)
        self.store.put(self.made, key)
        return key

    def read(self, key: str) -> bytes:
        """What is under a key."""
        with self.store.open(key) as file:
            return file.read()

    def text(self, key: str) -> str:
        """The text under a key, decompressed by its name."""
        raw = self.read(key)
        return (gzip.decompress(raw) if key.endswith(".gz") else raw).decode()

    def erase(self, *persons: Person, request: str = "R-1", **options) -> FilesRewritten:
        """Take people out of the files."""
        return rewrite_files(
            self.store, self.feed, persons or (ANN,), request, home=self.home, **options
        )

    @contextmanager
    def collected(self, suppression=NO_SUPPRESSION) -> Iterator[Delivery]:
        """Take what waits in the inbox, with what is staged of it."""
        with lock_feed(self.feed, self.home) as ingest:
            yield collect_files(self.store, ingest, suppression=suppression)

    def staged(self, suppression=NO_SUPPRESSION) -> list[tuple]:
        """Take what waits, and return (hash, number, id) of each row."""
        with self.collected(suppression) as delivery:
            rows = staged_rows(delivery)
        names = ("_source_sha256", "_source_row", "customer_id")
        return [tuple(row[name] for name in names) for row in rows]


@dataclass(frozen=True)
class ErasedCustomers:
    """When customers were erased, by id."""

    at: Mapping[str, datetime]
    key: bytes | None = None

    @property
    def erased_at(self) -> Mapping[bytes, datetime]:
        """By something in place of a hash."""
        return {id_.encode(): at for id_, at in self.at.items()}

    def erasure_time(self, names: Iterable[str], value: str) -> datetime | None:
        """Return when a customer was erased."""
        return self.at.get(value.strip()) if "customer_id" in names else None


def suppressed(at: Mapping[str, datetime]) -> SuppressionList:
    """Return a suppression list."""
    return SuppressionList(lambda: ErasedCustomers(at))


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Files:
    """Files in a home."""
    return Files(LocalObjectStore(home, settle_seconds=0), home, made=tmp_path / "made")


@pytest.fixture
def bucket(aws_settings: Settings, home: Path, tmp_path: Path) -> Files:
    """Files in a bucket."""
    return Files(open_store(aws_settings), home, made=tmp_path / "made")


@pytest.fixture(params=["folder", "bucket"])
def files(request: pytest.FixtureRequest) -> Files:
    """Files in a home, and in a bucket."""
    return request.getfixturevalue(request.param)
