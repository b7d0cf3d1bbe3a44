"""Finds rows of erased data subjects in files that arrive later, so that they do not land
again.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.iceberg.erasure.gone_people import GonePeople
from lakehouse.iceberg.erasure.without_gone import Gone
from lakehouse.ingestion.readers.arrow_types import text_of
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_KNOWN = 1 << 18
_TIMESTAMP = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<part>\d+))?)?"
    r"\s*(?P<offset>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_ZERO_OFFSETS = ("Z", "UTC", "GMT")


class ErasureLookup(Protocol):
    """Decides whether a row belongs to an erased data subject."""

    def is_gone(self, subject: str, value: str, created_at: datetime | None) -> bool:
        """Return whether a row belongs to an erased data subject and was created before the
        erasure.

        :param subject: the column that identifies a person.
        :param value: its value, in any written form.
        :param created_at: the creation time with a zone; None counts as before the erasure.
        """


@dataclass(frozen=True)
class _FeedErasures:
    erasures: Gone
    names: Collection[str]

    def is_gone(self, subject: str, value: str, created_at: datetime | None) -> bool:
        erased_at = self.erasures.is_gone({subject, *self.names}, value)
        return erased_at is not None and (created_at is None or created_at < erased_at)


def feed_erasures(people: GonePeople, feed: Feed) -> ErasureLookup | None:
    """Return the check for a feed's data subjects, or None if none of them is erased."""
    erasures = people.read()
    if feed.subject is None or not erasures.erased_at:
        return None
    return _FeedErasures(erasures, people.names_of(feed.table, feed.subject))


@dataclass
class ErasedRowFinder:
    """Finds rows of erased data subjects in the files of a feed with a subject column.

    Without a subject or an erasure it finds none.
    """

    feed: Feed
    erasures: ErasureLookup | None
    _known: dict[tuple[str, datetime | None], bool] = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[str]:
        """The subject column of the feed."""
        return frozenset({self.feed.subject} if self.feed.subject and self.erasures else ())

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the positions of rows created before their data subject was erased."""
        subject, names = self.feed.subject, batch.schema.names
        if self.erasures is None or subject is None or subject not in names:
            return ()
        values: Any = batch.column(names.index(subject)).dictionary_encode()
        created = self._creation_texts(batch)
        earliest = None if created is None else _EARLIEST
        listed = {
            index: value
            for index, value in enumerate(values.dictionary.to_pylist())
            if value is not None and self._is_listed(self.erasures, subject, value, earliest)
        }
        if not listed:
            return ()
        places = []
        for place, index in enumerate(values.indices.to_pylist()):
            if index in listed:
                created_at = (
                    parse_timestamp(created[place], self.feed.zone) if created else None
                )
                if self.erasures.is_gone(subject, listed[index], created_at):
                    places.append(place)
        return places

    def _is_listed(
        self, erasures: ErasureLookup, subject: str, value: str, earliest: datetime | None
    ) -> bool:
        """Return whether the earliest possible row of this data subject would be removed."""
        # Several threads read different files.
        is_listed = self._known.get((value, earliest))
        if is_listed is None:
            is_listed = erasures.is_gone(subject, value, earliest)
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known[value, earliest] = is_listed
        return is_listed

    def _creation_texts(self, batch: "pa.RecordBatch") -> list[str | None] | None:
        """Return the creation time of each row as delivered, or None without such a column."""
        column = self.feed.moment
        if column is None or column not in batch.schema.names:
            return None
        texts: list[str | None] = text_of(batch.column(column)).to_pylist()
        return texts


def parse_timestamp(text: str | None, zone: tzinfo) -> datetime | None:
    """Parse the delivered creation time of a row; None if it is not a timestamp.

    It accepts the same forms as `lakehouse.tables.casts.cast_sql`; a date means midnight.

    :param zone: the zone of timestamps without an offset.
    """
    match = _TIMESTAMP.fullmatch((text or "").strip())
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
