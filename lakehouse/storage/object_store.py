"""The interface of object stores for delivered files: a local folder or a bucket.

    inbox/<feed>/…              files that wait for ingestion
    archive/<feed>/<date>/…     landed files
    rejected/<feed>/…           rejected files, each with a `.reason.json`
    privacy/rewritten/<feed>/…  the ledger of files rewritten without some rows

Keys are relative to the home or the bucket, with `/` as separator.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

PLAIN_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class StoredObject:
    """The observed state of an object; any change of the object changes its `version`.

    `modified_at` is in UTC with microseconds, like table timestamps, so that both sort equally.
    """

    key: str
    modified_at: datetime
    size_bytes: int
    version: str
    """Inode, times and size of a local file; the ETag of an S3 object."""


@dataclass(frozen=True)
class PassedOver:
    """An inbox entry that is not a regular readable file and is skipped."""

    key: str
    kind: str
    """A description, such as 'a link'."""


class ObjectStore(ABC):
    """The operations that ingestion and erasure need from a folder or a bucket."""

    @property
    @abstractmethod
    def settle_seconds(self) -> float:
        """How long an object must be unchanged to be complete; 0 if objects appear atomically."""

    @property
    @abstractmethod
    def poll_seconds(self) -> float:
        """The time between two polls; a poll costs time or money."""

    @property
    @abstractmethod
    def object_errors(self) -> tuple[type[Exception], ...]:
        """Exceptions that concern one object; other objects may still be accessible."""

    @abstractmethod
    def objects(self, prefix: str) -> list[StoredObject]:
        """List the finished objects below a prefix that ends in `/`, by (modified time, key)."""

    @abstractmethod
    def unfinished(self, prefix: str) -> list[StoredObject]:
        """List hidden, incomplete and marker objects below a prefix, by (modified time, key)."""

    def passed_over(self, prefix: str) -> list[PassedOver]:  # noqa: ARG002
        """List links, pipes and other entries below a prefix that are not objects, by key."""
        return []

    @abstractmethod
    def is_being_written(self, key: str) -> bool | None:
        """Return whether a process has the object open for writing; None if unknown."""

    @abstractmethod
    def occupied(self, prefix: str) -> set[str]:
        """Return the non-empty folders directly below a prefix, in one query."""

    def missing(self, prefix: str) -> str | None:  # noqa: ARG002
        """Return the location of a prefix if it does not exist, else None."""
        return None

    @abstractmethod
    def stat(self, key: str) -> StoredObject | None:
        """Return the object's current state, or None if it does not exist."""

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        return self.stat(key) is not None

    @abstractmethod
    def open(self, key: str) -> BinaryIO:
        """Open an object for reading from the start.

        :raises FileNotFoundError: it does not exist.
        """

    @abstractmethod
    def move(self, seen: StoredObject, key: str) -> bool:
        """Move an object to another key. Return False if it changed; then it stays.

        If it is overwritten at the same instant, a bucket may still have its previous content
        under the new key.

        :raises FileExistsError: the key exists.
        """

    @abstractmethod
    def remove(self, seen: StoredObject) -> bool:
        """Remove an object. Return False, without changes, if it changed."""

    @abstractmethod
    def put(self, source: Path, key: str) -> None:
        """Copy a local file to a key atomically, replacing an existing object."""

    @abstractmethod
    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        """Replace the content of an object with a local file atomically and return its new
        state. Return None, without changes, if it changed.

        The previous content is deleted, including old versions in a bucket. A folder retains
        the modification time.
        """

    def old_versions(self, prefix: str) -> list[StoredObject]:  # noqa: ARG002
        """List old versions, also of deleted objects, in a versioned bucket, by key."""
        return []

    def open_old(self, old: StoredObject) -> BinaryIO:
        """Open an old version for reading.

        :raises FileNotFoundError: it does not exist.
        """
        raise FileNotFoundError(self.uri(old.key))

    def remove_old(self, old: StoredObject) -> None:
        """Remove an old version permanently."""
        raise FileNotFoundError(self.uri(old.key))

    @abstractmethod
    def remains(self, prefix: str) -> list[StoredObject]:
        """List all below a prefix, with hidden objects, old versions and uploads."""

    def discard_uploads(self, prefix: str) -> list[str]:  # noqa: ARG002
        """Abort incomplete uploads of killed processes, and return their keys."""
        return []

    @abstractmethod
    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:
        """Write UTF-8 text, replacing an existing object.

        :param content_type: the content type of an S3 object.
        """

    @abstractmethod
    def remove_folder(self, prefix: str) -> None:
        """Remove all below a prefix that ends in `/`, also what `remains` lists."""

    @abstractmethod
    def uri(self, key: str) -> str:
        """Return the object's address for messages."""

    @abstractmethod
    def spark_uri(self, key: str) -> str:
        """Return the address for Spark's Hadoop file systems."""
