"""Rows of people who were erased, in files that arrive later: they stay gone, where an id tells
whose they are.
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
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<part>\d+))?)?"
    r"\s*(?P<offset>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_ZERO_OFFSETS = ("Z", "UTC", "GMT")


class IsGone(Protocol):
    """Who was erased."""

    def is_gone(self, subject: str, value: str, moment: datetime | None) -> bool:
        """Whether a row is of somebody who was erased, and was made before.

        :param subject: the column that stands for a person.
        :param value: what it holds, in any form of it.
        :param moment: when the row was made, with a zone; None where nobody knows, and then it
            counts as made before.
        """


@dataclass(frozen=True)
class _GoneOfFeed:
    gone: Gone
    names: Collection[str]

    def is_gone(self, subject: str, value: str, moment: datetime | None) -> bool:
        erased_at = self.gone.is_gone({subject, *self.names}, value)
        return erased_at is not None and (moment is None or moment < erased_at)


def gone_of_feed(people: GonePeople, feed: Feed) -> IsGone | None:
    """Return who is gone now of the people that a feed has; None where nobody is."""
    gone = people.read()
    if feed.subject is None or not gone.erased_at:
        return None
    return _GoneOfFeed(gone, people.names_of(feed.table, feed.subject))


@dataclass
class GoneRows:
    """Finds the rows of people who were erased, in the files of a feed with a subject; of
    another, and where nobody was erased, it finds none.
    """

    feed: Feed
    gone: IsGone | None
    _known: dict[tuple[str, datetime | None], bool] = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[str]:
        """The subject of the feed."""
        return frozenset({self.feed.subject} if self.feed.subject and self.gone else ())

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the places of the rows that were made before their person was erased."""
        subject, names = self.feed.subject, batch.schema.names
        if self.gone is None or subject is None or subject not in names:
            return ()
        values: Any = batch.column(names.index(subject)).dictionary_encode()
        moments = self._moments(batch)
        earliest = None if moments is None else _EARLIEST
        listed = {
            index: value
            for index, value in enumerate(values.dictionary.to_pylist())
            if value is not None and self._is_listed(self.gone, subject, value, earliest)
        }
        if not listed:
            return ()
        places = []
        for place, index in enumerate(values.indices.to_pylist()):
            if index in listed:
                moment = read_moment(moments[place], self.feed.zone) if moments else None
                if self.gone.is_gone(subject, listed[index], moment):
                    places.append(place)
        return places

    def _is_listed(
        self, gone: IsGone, subject: str, value: str, earliest: datetime | None
    ) -> bool:
        """Whether any row of the person would go, were it early enough."""
        # Other threads look at other files.
        is_listed = self._known.get((value, earliest))
        if is_listed is None:
            is_listed = gone.is_gone(subject, value, earliest)
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known[value, earliest] = is_listed
        return is_listed

    def _moments(self, batch: "pa.RecordBatch") -> list[str | None] | None:
        """Return when each row was made, as delivered; None where no column says so."""
        column = self.feed.moment
        if column is None or column not in batch.schema.names:
            return None
        texts: list[str | None] = text_of(batch.column(column)).to_pylist()
        return texts


def read_moment(text: str | None, zone: tzinfo) -> datetime | None:
    """Return when a delivered text says that a row was made; None for what is no moment.

    It reads what `lakehouse.tables.casts.cast_sql` does; a day alone is its beginning.

    :param zone: where moments without an offset were written.
    """
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
