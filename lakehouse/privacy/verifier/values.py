"""The values of data subjects, and the search for their UTF-8 and JSON forms in bytes.

ASCII letters match in either case.
"""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Literal, NamedTuple

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick

from lakehouse.tables.person import Person, is_distinctive, normal_id

Kind = Literal["id", "personal value"]
CHUNK_BYTES = 4 * 1024 * 1024
_JSON_LEVELS = 3
"""JSON in a string of JSON in a string of JSON, as Dagster stores events."""
_MAX_CONTAINING = 1000
"""A value that more remaining values contain identifies no one in bytes."""
_INT64_END = 2**63


@dataclass(frozen=True, order=True)
class ValueLabel:
    """Describes a value without containing it."""

    person: int
    """Index of the person in the search."""
    kind: Kind
    is_shared: bool = False
    """Whether a person who remains explains the value."""


class SearchedValues:
    """The values of erased people, compared with those of people who remain.

    :param remaining: personal values of people who remain; read once, one at a time.
    """

    def __init__(self, people: Sequence[Person], remaining: Iterable[str] = ()) -> None:
        self.people = tuple(people)
        self._values = list(_values(self.people))
        self._shared: set[str] = set()
        self._containing: defaultdict[str, set[str]] = defaultdict(set)
        values = {fold(value) for value, _ in self._values}
        texts = sorted(filter(is_distinctive, values))
        search = AhoCorasick(texts)
        for folded in map(fold, remaining):
            if folded in values:
                self._shared.add(folded)
            for index in search.find_matches_as_indexes(folded, overlapping=True):
                containing = self._containing[texts[index[0]]]
                if texts[index[0]] != folded and len(containing) <= _MAX_CONTAINING:
                    containing.add(folded)

    def texts(self) -> Iterator[tuple[str, ValueLabel]]:
        """Yield the values to search in bytes."""
        for value, label in self._values:
            if is_distinctive(value):
                is_shared = label.kind != "id" and self._identifies_no_one(value)
                yield value, replace(label, is_shared=is_shared)

    def longer_texts(self) -> set[str]:
        """Return the remaining values that contain a searched value, and explain it there."""
        texts: set[str] = set()
        for value, longer in self._containing.items():
            if not self._identifies_no_one(value):
                texts |= longer
        return texts

    def integers(self) -> dict[int, ValueLabel]:
        """Return the distinctive ids that are 64-bit integers."""
        return {
            int(value): label
            for value, label in reversed(self._values)
            if label.kind == "id"
            and value.isascii()
            and value.isdigit()
            and is_distinctive(value)
            and int(value) < _INT64_END
        }

    def is_shared(self, value: str) -> bool:
        """Whether a person who remains has the same value."""
        return fold(value) in self._shared

    def _identifies_no_one(self, value: str) -> bool:
        containing = self._containing.get(fold(value), ())
        return self.is_shared(value) or len(containing) > _MAX_CONTAINING


def fold(value: str) -> str:
    """Return a value as it is compared with others: without regard to case."""
    return unicodedata.normalize("NFC", normal_id(value)).lower()


def _values(people: Iterable[Person]) -> Iterator[tuple[str, ValueLabel]]:
    for number, person in enumerate(people):
        for value in sorted(filter(str.strip, person.ids)):
            yield normal_id(value), ValueLabel(number, "id")
        for column in sorted(person.personal):
            for value in sorted(filter(str.strip, person.personal[column])):
                yield value.strip(), ValueLabel(number, "personal value")


def byte_forms(value: str) -> dict[bytes, str]:
    """Return the encodings of a value by their bytes in lower case."""
    forms: dict[bytes, str] = {}
    for text in (value, value.lower(), value.upper()):
        normalized = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
        for variant in (*normalized, text):
            for content, encoding in _encoded(variant):
                forms.setdefault(content.lower(), encoding)
    return forms


def _encoded(text: str) -> Iterator[tuple[bytes, str]]:
    yield text.encode("utf-8", "surrogatepass"), "UTF-8"
    latin = text.encode("cp1252", "ignore")
    if latin.decode("cp1252") == text:
        yield latin, "Latin-1"
    for is_ascii in (True, False):
        escaped = text
        for _ in range(_JSON_LEVELS):
            escaped = json.dumps(escaped, ensure_ascii=is_ascii)[1:-1]
            yield escaped.encode("utf-8", "surrogatepass"), "JSON"
            yield escaped.replace("/", "\\/").encode("utf-8", "surrogatepass"), "JSON"


class Hit(NamedTuple):
    """A searched value in bytes."""

    start: int
    end: int
    label: ValueLabel
    encoding: str


class ByteSearch:
    """Finds all distinctive values in one pass (Aho-Corasick)."""

    def __init__(self, values: SearchedValues) -> None:
        patterns: dict[bytes, tuple[ValueLabel | None, str, bool]] = {}
        searched: list[tuple[str, ValueLabel | None]] = [*values.texts()]
        # The values of people who remain have no label.
        searched += [(text, None) for text in values.longer_texts()]
        for text, label in searched:
            for content, encoding in byte_forms(text).items():
                patterns.setdefault(content, (label, encoding, text.isdigit()))
        self._patterns = list(patterns.values())
        self._automaton = BytesAhoCorasick(list(patterns)) if patterns else None
        self.margin = 2 + max(map(len, patterns), default=0)

    def find(self, content: bytes) -> list[Hit]:
        """Return the outermost hits; digits next to a number make it another number.

        A hit within a value of a person who remains is shared.
        """
        if self._automaton is None:
            return []
        matches = self._automaton.find_matches_as_indexes(content.lower(), overlapping=True)
        hits: list[Hit] = []
        furthest_end = -1
        is_remaining = False
        for index, start, end in sorted(matches, key=lambda match: (match[1], -match[2])):
            label, encoding, is_number = self._patterns[index]
            neighbours = content[max(0, start - 1) : start] + content[end : end + 1]
            if is_number and any(48 <= byte < 58 for byte in neighbours):
                continue
            is_outermost = end > furthest_end
            if is_outermost:
                furthest_end, is_remaining = end, label is None
            if label and is_outermost:
                hits.append(Hit(start, end, label, encoding))
            elif label and is_remaining:
                hits.append(Hit(start, end, replace(label, is_shared=True), encoding))
        return hits

    def find_in_file(
        self, file: BinaryIO, size_bytes: int, chunk_bytes: int = CHUNK_BYTES
    ) -> Iterator[Hit]:
        """Yield the hits in the next bytes of a file, in overlapping windows."""
        window = b""
        window_start = decided_end = 0
        while True:
            chunk = file.read(min(chunk_bytes, size_bytes)) if size_bytes else b""
            size_bytes -= len(chunk)
            window += chunk
            window_end = window_start + len(window)
            # A hit near the end can continue in the next chunk, or be part of a longer one.
            limit = window_end - self.margin if chunk else window_end
            for hit in self.find(window):
                end = hit.end + window_start
                if decided_end < end <= limit:
                    yield hit._replace(start=hit.start + window_start, end=end)
            decided_end = max(decided_end, limit)
            if not chunk:
                return
            window = window[-2 * self.margin :]
            window_start = window_end - len(window)
