"""How people are found in delivered files: in rows by their columns, and in text that nobody can
read as rows by the values that bytes can tell.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.arrow_ids import (
    all_of,
    any_of,
    is_among,
    is_blank,
    is_id_among,
    stripped,
)
from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.tables.person import Person, is_distinctive, normal_id

if TYPE_CHECKING:
    import pyarrow as pa
    from ahocorasick_rs import BytesAhoCorasick

_LATIN = "latin-1"
_ENCODINGS = ("utf-8", _LATIN)


@dataclass(frozen=True)
class PersonRows:
    """Finds the rows of some people in delivered files.

    A row is of a person where the column that stands for people has the person's id. Where a
    file has no such column, or the row no value in it, a personal value tells.
    """

    persons: Sequence[Person]

    @cached_property
    def columns(self) -> frozenset[str]:
        """The subjects and the personal columns."""
        return frozenset({*self._ids, *self._personal})

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the places of their rows among those of a batch, in order."""
        import pyarrow.compute as pc

        subjects = [name for name in batch.schema.names if name in self._ids]
        personal = [name for name in batch.schema.names if name in self._personal]
        by_id, is_nobody = [], []
        for name in subjects:
            values = batch.column(name)
            by_id.append(is_id_among(values, self._ids[name]))
            is_nobody.append(is_blank(values))
        by_value = []
        for name in personal:
            values = stripped(batch.column(name))
            by_value.append(is_among(values, self._personal[name]))
        masks = [*by_id, *(all_of([one, *is_nobody]) for one in by_value)]
        if not masks:
            return []
        places: Any = pc.indices_nonzero(any_of(masks))
        found: list[int] = places.to_pylist()
        return found

    @cached_property
    def _ids(self) -> dict[str, frozenset[str]]:
        ids: dict[str, frozenset[str]] = {}
        for person in self.persons:
            known = ids.get(person.subject, frozenset())
            ids[person.subject] = known.union(map(normal_id, person.ids)) - {""}
        return ids

    @cached_property
    def _personal(self) -> dict[str, frozenset[str]]:
        personal: dict[str, frozenset[str]] = {}
        for person in self.persons:
            for column, values in person.personal.items():
                known = personal.get(column, frozenset())
                personal[column] = known.union(value.strip() for value in values) - {""}
        return personal


@dataclass(frozen=True)
class PersonText:
    """Finds some people in text, in whatever encoding, and takes them out of it."""

    persons: Sequence[Person]

    @cached_property
    def longest_bytes(self) -> int:
        """How long the longest of their values is, in bytes."""
        return max(map(len, self._patterns), default=0)

    def is_in(self, text: bytes) -> bool:
        """Whether a value of theirs that can be told from others is in a text."""
        return self._search is not None and bool(self._search.find_matches_as_indexes(text))

    def may_be_in(self, values: Sequence[str]) -> bool:
        """Whether one of some values equals an id of theirs that others may have too."""
        return not self._short_ids.isdisjoint(map(normal_id, values))

    def is_in_name(self, name: str) -> bool:
        """Whether a value of theirs is in the name of a file."""
        return self.is_in(name.encode("utf-8", "replace"))

    def erased(self, text: str) -> str:
        """Return a text with `[erased]` for each value of theirs that can be told."""
        for value in self._longest_first:
            # What a person gave as a reason is JSON in JSON.
            escaped = json.dumps(value)[1:-1]
            for written in (value, escaped, json.dumps(escaped)[1:-1]):
                text = text.replace(written, ERASED)
        return text

    @cached_property
    def _longest_first(self) -> list[str]:
        return sorted(self._distinctive, key=len, reverse=True)

    @cached_property
    def _distinctive(self) -> frozenset[str]:
        return frozenset(filter(is_distinctive, _values(self.persons)))

    @cached_property
    def _short_ids(self) -> frozenset[str]:
        ids = {value for person in self.persons for value in person.ids}
        return frozenset(normal_id(value) for value in ids if not is_distinctive(value))

    @cached_property
    def _patterns(self) -> frozenset[bytes]:
        return frozenset(_written(self._distinctive))

    @cached_property
    def _search(self) -> "BytesAhoCorasick | None":
        from ahocorasick_rs import BytesAhoCorasick

        return BytesAhoCorasick(sorted(self._patterns)) if self._patterns else None


def _values(persons: Iterable[Person]) -> Iterator[str]:
    for person in persons:
        yield from (value.strip() for value in person.ids)
        for values in person.personal.values():
            yield from (value.strip() for value in values)


def _written(values: Iterable[str]) -> Iterator[bytes]:
    """Yield how values may stand in a file: a quote in a quoted field is written twice."""
    for value in values:
        for text in (value, value.replace('"', '""')):
            for encoding in _ENCODINGS:
                if encoding != _LATIN or max(map(ord, text)) < 256:
                    yield text.encode(encoding, "replace")
