"""Rewrite a delivered file without some of its rows, and keep the original row numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.found_rows import (
    FoundRows,
    RowFinder,
    TextFinder,
    find_rows,
    format_of,
)
from lakehouse.ingestion.readers.byte_source import HashedBytes
from lakehouse.ingestion.readers.file_formats import write_without_rows
from lakehouse.ingestion.rewritten_files import (
    NOTHING,
    Change,
    KnownContent,
    RewrittenFiles,
    delivered_name,
)
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowNumbers:
    """Maps rows of a file to their numbers as delivered.

    `missing` are the numbers of removed rows. Numbers and positions count from 1 after the
    header, which is 0.
    """

    missing: tuple[int, ...] = ()

    @classmethod
    def without(cls, missing: Iterable[int]) -> "RowNumbers":
        return cls(tuple(sorted(set(missing))))

    def number(self, position: int) -> int:
        """Return the delivered number of the row at a current position."""
        return position + bisect_right(self._shifts, position)

    def position(self, number: int) -> int:
        """Return the current position of a row that is in the file."""
        return number - bisect_left(self.missing, number)

    def of_batch(self, first: int, rows: int) -> "pa.Int64Array":
        import numpy as np
        import pyarrow as pa

        positions = np.arange(first, first + rows, dtype=np.int64)
        if not self.missing:
            return pa.array(positions, pa.int64())
        shifts = np.searchsorted(np.array(self._shifts), positions, side="right")
        return pa.array(positions + shifts, pa.int64())

    @cached_property
    def _shifts(self) -> list[int]:
        """The positions at which the difference between number and position grows by one."""
        return [number - index for index, number in enumerate(self.missing)]


@dataclass(frozen=True)
class Rewriting:
    """Rewrites the files of a feed; the caller holds the feed's lock.

    `folder` contains the new content until the exchange. `look` searches a local file.
    `ledger_name` returns the name under which the ledger records a file.
    """

    store: ObjectStore
    feed: Feed
    ledger: RewrittenFiles
    folder: Path
    look: Callable[[str, Path], FoundRows]
    request: str | None = None
    ledger_name: Callable[[str], str] = lambda name: name

    def leave_out(
        self, item: StoredObject, found: FoundRows, known: KnownContent, rows: Collection[int]
    ) -> StoredObject | None:
        """Replace a file with itself minus some rows; return the new state, or None if it
        changed.

        The new content is verified and recorded in the ledger before the exchange.

        :param known: the delivery that the content belongs to.
        :param rows: row numbers of that delivery.
        :raises LakehouseError: the format cannot be rewritten, or the new content is not the
            old one without these rows.
        """
        numbers = RowNumbers.without(known.missing)
        positions = frozenset(numbers.position(row) for row in rows)
        with TemporaryDirectory(prefix="rewritten-", dir=self.folder) as folder:
            made = Path(folder) / "made"
            if self._write(item, positions, made) != found.sha256:
                return None
            verified = self.look(item.key, made)
            if verified.positions or verified.rows != max(0, found.rows - len(positions)):
                raise _unlike(known.sha256)
            return self._exchange(item, known, found.sha256, verified.sha256, rows, made)

    def leave_nothing(
        self, item: StoredObject, sha256: str, known: KnownContent
    ) -> StoredObject | None:
        """Replace a file with an empty one; return the new state, or None if it changed."""
        with TemporaryDirectory(prefix="rewritten-", dir=self.folder) as folder:
            made = Path(folder) / "made"
            made.touch()
            return self._exchange(item, known, sha256, NOTHING, (), made)

    def _exchange(
        self,
        item: StoredObject,
        known: KnownContent,
        old_sha256: str,
        new_sha256: str,
        rows: Collection[int],
        made: Path,
    ) -> StoredObject | None:
        name = self.ledger_name(delivered_name(self.feed, item.key, known.sha256))
        removed, now = tuple(sorted(rows)), datetime.now(UTC)
        change = Change(
            old_sha256, new_sha256, removed, name, self.request, now, item.modified_at
        )
        self.ledger.record(known, change)
        return self.store.exchange(item, made)

    def _write(self, item: StoredObject, positions: Collection[int], made: Path) -> str:
        """Write a file without some rows, and return the hash of the content that was read."""
        its_format = format_of(self.feed, item.key)
        with self.store.open(item.key) as raw, made.open("wb") as target:
            delivered = HashedBytes(raw)
            write_without_rows(
                its_format, delivered, positions, target, delimiter=self.feed.delimiter
            )
            return delivered.sha256()


def look_into(
    feed: Feed, rows: RowFinder, text: TextFinder | None = None
) -> Callable[[str, Path], FoundRows]:

    def look(name: str, file: Path) -> FoundRows:
        return find_rows(feed, name, lambda: file.open("rb"), rows, text)

    return look


def _unlike(sha256: str) -> LakehouseError:
    # The file name may contain personal data.
    return LakehouseError(
        f"The delivered file with SHA-256 {sha256} was written without some rows, and what was"
        " read of it is not what was expected: all other rows, and no row more.",
        next_step="It stays as it is. Report this with a file like it.",
    )
