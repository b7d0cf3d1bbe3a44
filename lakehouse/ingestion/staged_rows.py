"""Where the staged rows of an ingest stand, so that every part of Spark can read them: below the
home, or in the bucket.

    <home>/staging/<feed>/<ingest id>/rows/_source_sha256=<sha256>/<number>.parquet
    s3://<bucket>/staging/<feed>/<writer>/<ingest id>/<sha256>-<number>.parquet

What executors stage has names of its own: one that was given up may still put rows there, at any
time.

The hash of a file is known once it was read; so it stands in the path. Spark reads a folder's name
as a column, which costs nothing for each row. S3 is asked about each folder, so that there all
files of an ingest are in one, and the hash is cut out of their names.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lakehouse.runtime.s3a import s3a_options
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import create_bytes, replace_text
from lakehouse.storage.object_store import StoredObject

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

HASH = "_source_sha256"
_HASH_LENGTH = 64
FILE_NAME_SQL = "_metadata.file_name"
"""The name of the file that a row is read from."""
LEFT_AFTER = timedelta(days=1)
"""What another host staged in the bucket so long ago is taken for left behind."""
_WRITER_FILE = "staging-writer"
_WRITER_BYTES = 6


class StagedRows(Protocol):
    """The folder of one ingest's staged rows."""

    @property
    def uri(self) -> str:
        """Where Spark reads it."""

    @property
    def spark_options(self) -> Mapping[str, str]:
        """What a reader of Spark has to be told besides."""

    @property
    def hash_sql(self) -> str | None:
        """The SQL of the hash of the file that a row is from; None where it is a column."""

    def name(self, sha256: str, number: int, *, by_executor: bool = False) -> str:
        """Return the name, in the folder, of the rows of a file: the one of that number in its
        delivery.
        """

    def put(self, file: Path, name: str) -> None:
        """Give a local Parquet file to the folder; it may be gone afterwards."""

    def remove(self, name: str) -> None:
        """Remove a file of it."""


@dataclass(frozen=True)
class LocalRows:
    """Rows below the home; they go with the ingest's folder."""

    folder: Path
    spark_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        """Where Spark reads it: the path as it stands, since Hadoop takes no escapes."""
        return f"file://{self.folder}"

    @property
    def hash_sql(self) -> None:
        """A folder's name is a column."""

    def name(self, sha256: str, number: int, *, by_executor: bool = False) -> str:
        """Return a path with the hash as a column."""
        return f"{HASH}={sha256}/{_file_name(number, by_executor=by_executor)}"

    def put(self, file: Path, name: str) -> None:
        """Move a file of the same disk."""
        target = self.folder / name
        target.parent.mkdir(exist_ok=True)
        file.rename(target)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.folder / name).unlink()


@dataclass(frozen=True)
class BucketRows:
    """Rows in the bucket below a prefix that ends in `/`."""

    store: "S3ObjectStore"
    prefix: str
    spark_options: Mapping[str, str]

    @property
    def uri(self) -> str:
        """Where Spark reads it."""
        return self.store.uri(self.prefix)

    @property
    def hash_sql(self) -> str:
        """The beginning of a file's name."""
        return f"substring({FILE_NAME_SQL}, 1, {_HASH_LENGTH})"

    def name(self, sha256: str, number: int, *, by_executor: bool = False) -> str:
        """Return a name that begins with the hash."""
        return f"{sha256}-{_file_name(number, by_executor=by_executor)}"

    def put(self, file: Path, name: str) -> None:
        """Upload a file."""
        self.store.put(file, f"{self.prefix}{name}")

    def remove(self, name: str) -> None:
        """Remove an object, with all that the bucket keeps of it."""
        self.store.remove_versions(self.store.all_versions(f"{self.prefix}{name}"))

    def clear(self) -> None:
        """Remove all objects, with all that the bucket keeps of them."""
        self.store.remove_versions(self.store.all_versions(self.prefix))


@dataclass(frozen=True)
class BucketStaging:
    """The staged rows of all feeds in a bucket, which lakehouses of several hosts may write to.

    `writer` is what tells this home from the others: a random id that it keeps, since containers
    may share a name and a path.
    """

    store: "S3ObjectStore"
    writer: str
    spark_options: Mapping[str, str]

    def rows(self, feed_name: str, ingest_id: str) -> BucketRows:
        """Return the folder of an ingest."""
        prefix = f"{self.own_prefix(feed_name)}{ingest_id}/"
        return BucketRows(self.store, prefix, self.spark_options)

    def feed_uri(self, feed_name: str) -> str:
        """Return where all hosts stage the rows of a feed, for people."""
        return self.store.uri(f"staging/{feed_name}/")

    def own_prefix(self, feed_name: str) -> str:
        """Return where this home stages the rows of a feed."""
        return f"staging/{feed_name}/{self.writer}/"

    def remove_left(self, feed_name: str) -> None:
        """Remove what dead ingests of a feed left, which is held: those of this home, and of
        others what is older than `LEFT_AFTER`.
        """
        own = self.own_prefix(feed_name)
        self._remove(
            f"staging/{feed_name}/", lambda item: item.key.startswith(own) or is_left(item)
        )

    def remove_old(self, prefix: str) -> None:
        """Remove what is older than `LEFT_AFTER` below a prefix that ends in `/`."""
        self._remove(prefix, is_left)

    def _remove(self, prefix: str, goes: Callable[[StoredObject], bool]) -> None:
        versions, uploads = self.store.all_versions(prefix), self.store.uploads(prefix)
        self.store.remove_versions([version for version in versions if goes(version)])
        self.store.abort_uploads([upload for upload in uploads if goes(upload)])


def is_left(item: StoredObject) -> bool:
    """Whether rows of another host are so old that nobody can be at them."""
    return datetime.now(UTC) - item.modified_at > LEFT_AFTER


def by_writer(items: Sequence[StoredObject]) -> dict[tuple[str, str], list[StoredObject]]:
    """Return what is staged in a bucket by feed and writer; what Hadoop's file systems put there
    for a folder is nothing.
    """
    staged: dict[tuple[str, str], list[StoredObject]] = {}
    for item in items:
        _, feed_name, writer, *below = (*item.key.split("/"), "", "")
        if any(below) and not item.key.endswith("_$folder$"):
            staged.setdefault((feed_name, writer), []).append(item)
    return staged


def open_staging(settings: Settings) -> BucketStaging | None:
    """Return where rows are staged in the deployment's bucket; None where they are below the
    home.
    """
    if settings.deployment != "aws":
        return None
    from lakehouse.storage.s3 import open_bucket

    return BucketStaging(open_bucket(settings), _writer(settings), s3a_options(settings))


def _writer(settings: Settings) -> str:
    file = settings.home / _WRITER_FILE
    if not file.exists():
        settings.make_home()
        text = secrets.token_hex(_WRITER_BYTES)
        # Another process may be first, and has made one for both.
        if not create_bytes(file, text.encode()) and not file.exists():
            replace_text(file, text)
    return file.read_text(encoding="utf-8")


def _file_name(number: int, *, by_executor: bool) -> str:
    return f"{number:06}{'-executor' if by_executor else ''}.parquet"
