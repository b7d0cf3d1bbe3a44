"""Where the staged rows of an ingest are stored: below the home or in the bucket, so that Spark
can read them.

    <home>/staging/<feed>/<ingest id>/rows/<sha256>-<number>.parquet
    s3://<bucket>/staging/<feed>/<writer>/<ingest id>/<sha256>-<number>.parquet

All files of an ingest are in one folder, since listing many folders of a bucket is expensive.
The hash of a file, known only after reading, is read from the name. Files staged by executors
have distinct names: an abandoned task can write at any time.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.settings import Settings
from lakehouse.spark.s3a import s3a_options
from lakehouse.storage.atomic_files import create_bytes
from lakehouse.storage.object_store import StoredObject

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

HASH_LENGTH = 64
"""The hash is the start of the name of a staged file."""
LEFT_AFTER = timedelta(days=1)
"""Staged rows of another host are orphaned after this age."""
_WRITER_FILE = "staging-writer"
_WRITER_BYTES = 6


class StagedRows(ABC):
    """The folder of one ingest's staged rows."""

    @property
    @abstractmethod
    def spark_options(self) -> Mapping[str, str]:
        """Additional options for Spark's reader."""

    @property
    @abstractmethod
    def uri(self) -> str:
        """The address that Spark reads."""

    def name(self, sha256: str, number: int, *, by_executor: bool = False) -> str:
        """Return the file name for the rows of the file with this number in the delivery."""
        return f"{sha256}-{number:06}{'-executor' if by_executor else ''}.parquet"

    @abstractmethod
    def put(self, file: Path, name: str) -> None:
        """Move or upload a local Parquet file into the folder."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file from the folder."""


@dataclass(frozen=True)
class LocalRows(StagedRows):
    """Staged rows below the home, removed with the ingest's folder."""

    folder: Path

    @property
    def spark_options(self) -> Mapping[str, str]:
        return {}

    @property
    def uri(self) -> str:
        """The address that Spark reads, without escapes, which Hadoop does not decode."""
        return f"file://{self.folder}"

    def put(self, file: Path, name: str) -> None:
        file.rename(self.folder / name)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()


@dataclass(frozen=True)
class BucketRows(StagedRows):
    """Staged rows in the bucket below a prefix that ends in `/`."""

    store: "S3ObjectStore"
    prefix: str
    options: Mapping[str, str]

    @property
    def spark_options(self) -> Mapping[str, str]:
        return self.options

    @property
    def uri(self) -> str:
        return self.store.uri(self.prefix)

    def put(self, file: Path, name: str) -> None:
        self.store.put(file, f"{self.prefix}{name}")

    def remove(self, name: str) -> None:
        self.store.remove_versions(self.store.all_versions(f"{self.prefix}{name}"))

    def clear(self) -> None:
        self.store.remove_versions(self.store.all_versions(self.prefix))


@dataclass(frozen=True)
class BucketStaging:
    """Staging of all feeds in a bucket that several hosts can share.

    `writer` is a random id stored in the home. Host name and path do not identify a home, since
    containers can share both.
    """

    store: "S3ObjectStore"
    writer: str
    spark_options: Mapping[str, str]

    def rows(self, feed_name: str, ingest_id: str) -> BucketRows:
        prefix = f"{self.own_prefix(feed_name)}{ingest_id}/"
        return BucketRows(self.store, prefix, self.spark_options)

    def feed_uri(self, feed_name: str) -> str:
        """Return the address where all hosts stage the rows of a feed, for messages."""
        return self.store.uri(f"staging/{feed_name}/")

    def own_prefix(self, feed_name: str) -> str:
        """Return the prefix under which this home stages the rows of a feed."""
        return f"staging/{feed_name}/{self.writer}/"

    def remove_left(self, feed_name: str) -> None:
        """Remove what crashed ingests left: everything of this home, and what other homes
        staged more than `LEFT_AFTER` ago. The caller holds the feed's lock.
        """
        own = self.own_prefix(feed_name)
        self._remove(
            f"staging/{feed_name}/", lambda item: item.key.startswith(own) or is_left(item)
        )

    def remove_old(self, prefix: str) -> None:
        """Remove everything older than `LEFT_AFTER` below a prefix that ends in `/`."""
        self._remove(prefix, is_left)

    def _remove(self, prefix: str, is_removable: Callable[[StoredObject], bool]) -> None:
        versions, uploads = self.store.all_versions(prefix), self.store.uploads(prefix)
        self.store.remove_versions([version for version in versions if is_removable(version)])
        self.store.abort_uploads([upload for upload in uploads if is_removable(upload)])


def is_left(item: StoredObject) -> bool:
    return datetime.now(UTC) - item.modified_at > LEFT_AFTER


def by_writer(items: Sequence[StoredObject]) -> dict[tuple[str, str], list[StoredObject]]:
    """Group staged objects by feed and writer, ignoring Hadoop's folder markers."""
    staged: dict[tuple[str, str], list[StoredObject]] = {}
    for item in items:
        _, feed_name, writer, *below = (*item.key.split("/"), "", "")
        if any(below) and not item.key.endswith("_$folder$"):
            staged.setdefault((feed_name, writer), []).append(item)
    return staged


def open_staging(settings: Settings) -> BucketStaging | None:
    """Return the staging area in the deployment's bucket; None if rows are staged in the home."""
    if settings.deployment != "aws":
        return None
    from lakehouse.storage.s3 import open_bucket

    return BucketStaging(open_bucket(settings), _writer(settings), s3a_options(settings))


def _writer(settings: Settings) -> str:
    file = settings.home / _WRITER_FILE
    if not file.exists():
        settings.make_home()
        create_bytes(file, secrets.token_hex(_WRITER_BYTES).encode())
    return file.read_text(encoding="utf-8")
