"""Rows of erased data subjects in delivered files, which do not land."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.suppression_list import ErasedIds, SuppressionList
from lakehouse.ingestion.readers.arrow_types import text_of
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

_ONE_DIGIT = re.compile(r"(?<=[-T ])\d(?=\D|$)")
"""A month, day or hour of one digit, which a cast accepts."""
_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d\d|Z$)")


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
    """Parse the timestamp of a row like `casts.cast_sql`, or return None."""
    iso = re.sub(r"\s*(?:UTC|GMT)$", "Z", (text or "").strip().upper())
    iso = _BEFORE_OFFSET.sub("", _ONE_DIGIT.sub(r"0\g<0>", iso))
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=zone)
