"""Rows of erased data subjects in delivered files, which do not land."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.suppression_list import ErasedIds, SuppressionList
from lakehouse.ingestion.readers.arrow_types import text_of
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<part>\d+))?)?"
    r"\s*(?P<offset>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_ZERO_OFFSETS = ("Z", "UTC", "GMT")


@dataclass(frozen=True)
class SuppressedRows:
    """Finds the rows of erased data subjects in the files of a feed with a subject."""

    feed: Feed
    ids: ErasedIds | None = None
    names: Collection[str] = ()
    """All names of the feed's subject in any table."""

    @classmethod
    def of(cls, feed: Feed, suppression: SuppressionList) -> "SuppressedRows":
        ids = suppression.read()
        if feed.subject is None or not ids.erased_at:
            return cls(feed)
        return cls(feed, ids, suppression.names_of(feed.table, feed.subject))

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.feed.subject} if self.feed.subject and self.ids else ())

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the positions of the rows that were created before their person's erasure."""
        subject, names = self.feed.subject, batch.schema.names
        if self.ids is None or subject is None or subject not in names:
            return ()
        values: Any = batch.column(names.index(subject)).dictionary_encode()
        erased_at = {}
        for index, value in enumerate(values.dictionary.to_pylist()):
            if value is not None and (at := self.ids.erasure_time(self.names, value)):
                erased_at[index] = at
        if not erased_at:
            return ()
        created = self._created(batch)
        places = []
        for place, index in enumerate(values.indices.to_pylist()):
            if index in erased_at:
                at = read_moment(created[place], self.feed.zone) if created else None
                if at is None or at < erased_at[index]:
                    places.append(place)
        return places

    def _created(self, batch: "pa.RecordBatch") -> list[str | None] | None:
        column = self.feed.moment
        if column is None or column not in batch.schema.names:
            return None
        texts: list[str | None] = text_of(batch.column(column)).to_pylist()
        return texts


def read_moment(text: str | None, zone: tzinfo) -> datetime | None:
    """Parse the timestamp of a row as `casts.cast_sql` does, or return None."""
    match = _MOMENT.fullmatch((text or "").strip())
    if not match:
        return None
    year, month, day = map(int, match["day"].split("-"))
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    microsecond = int(f"{match['part'] or '':0<6}"[:6])
    try:
        offset = _offset(match["offset"]) if match["offset"] else zone
        return datetime(year, month, day, hour, minute, second, microsecond, offset)
    except ValueError:
        return None


def _offset(text: str) -> tzinfo:
    if text.upper() in _ZERO_OFFSETS:
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text.startswith("-") else offset)
