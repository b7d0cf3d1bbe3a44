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

Kind = Literal["id", "personal value", "beginning of a value"]
CHUNK_BYTES = 4 * 1024 * 1024
BOUND_LENGTH = 16
"""Characters that Iceberg keeps of a string's bounds by default
(`write.metadata.metrics.default=truncate(16)`).
"""
_JSON_LEVELS = 3
"""JSON in a string of JSON in a string of JSON, as Dagster stores events."""
_MAX_CONTAINING = 1000
"""A value that more remaining values contain identifies no one in bytes."""
_INT64_END = 2**63


@dataclass(frozen=True, order=True)
class Sought:
    """What a hit stands for; it does not contain the value."""

    person: int
    """Index of the person in the search."""
    kind: Kind
    is_shared: bool = False
    """Whether a person who remains explains the hit."""


class SearchedValues:
    """The values of erased people, compared with those of people who remain.

    :param remaining: personal values of people who remain; read once, one at a time.
    """

    def __init__(self, people: Sequence[Person], remaining: Iterable[str] = ()) -> None:
        self.people = tuple(people)
        self._values = list(_values(self.people))
        self._shared: set[str] = set()
        self._begun: set[str] = set()
        self._containing: defaultdict[str, set[str]] = defaultdict(set)
        self._compare(remaining)

    def texts(self) -> Iterator[tuple[str, Sought]]:
        """Yield the values to search in bytes."""
        for value, sought in self._values:
            if is_distinctive(value):
                is_shared = sought.kind != "id" and self._identifies_no_one(value)
                yield value, replace(sought, is_shared=is_shared)

    def longer_texts(self) -> set[str]:
        """Return the remaining values that contain a searched value, and explain it there."""
        found: set[str] = set()
        for value, longer in self._containing.items():
            if not self._identifies_no_one(value):
                found |= longer
        return found

    def bounds(self) -> dict[str, Sought]:
        """Return the truncated bounds that Iceberg keeps of the values, folded."""
        found: dict[str, Sought] = {}
        for value, sought in self._values:
            bounds = truncated_bounds(value) if is_distinctive(value) else []
            is_shared = not self._begun.isdisjoint(bounds)
            for bound in bounds:
                hit = Sought(sought.person, "beginning of a value", is_shared)
                found.setdefault(bound, hit)
        return found

    def integers(self) -> dict[int, Sought]:
        """Return the distinctive ids that are 64-bit integers."""
        return {
            int(value): sought
            for value, sought in reversed(self._values)
            if sought.kind == "id"
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

    def _compare(self, remaining: Iterable[str]) -> None:
        values = {fold(value) for value, _ in self._values}
        bounds = {bound for value, _ in self._values for bound in truncated_bounds(value)}
        texts = sorted(bounds | set(filter(is_distinctive, values)))
        search = AhoCorasick(texts)
        for value in remaining:
            folded = fold(value)
            if folded in values:
                self._shared.add(folded)
            matches = search.find_matches_as_indexes(folded, overlapping=True)
            for text, start in ((texts[index], start) for index, start, _ in matches):
                if start == 0 and text in bounds:
                    self._begun.add(text)
                containing = self._containing[text]
                if text in values and text != folded and len(containing) <= _MAX_CONTAINING:
                    containing.add(folded)


def fold(value: str) -> str:
    """Return a value as it is compared with others: without regard to case."""
    return unicodedata.normalize("NFC", normal_id(value)).lower()


def truncated_bounds(value: str) -> list[str]:
    """Return Iceberg's lower and upper bound of a longer value, folded."""
    text = fold(value)
    if len(text) <= BOUND_LENGTH:
        return []
    lower = text[:BOUND_LENGTH]
    # Iceberg increments the last character; in capitals the same letter follows.
    return [lower, f"{lower[:-1]}{chr(ord(lower[-1]) + 1)}"]


def _values(people: Iterable[Person]) -> Iterator[tuple[str, Sought]]:
    for number, person in enumerate(people):
        for value in sorted(filter(str.strip, person.ids)):
            yield normal_id(value), Sought(number, "id")
        for column in sorted(person.personal):
            for value in sorted(filter(str.strip, person.personal[column])):
                yield value.strip(), Sought(number, "personal value")


def byte_forms(value: str) -> dict[bytes, str]:
    """Return the encodings of a value by their bytes in lower case."""
    forms: dict[bytes, str] = {}
    for text in (value, value.lower(), value.upper()):
        for form in ("NFC", "NFD"):
            for content, encoding in _encoded(unicodedata.normalize(form, text)):
                forms.setdefault(content.lower(), encoding)
        for content, encoding in _encoded(text):
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
    """A value in bytes; `sought` is None for a value of a person who remains."""

    start: int
    end: int
    sought: Sought | None
    encoding: str


class ByteSearch:
    """Finds all distinctive values in one pass (Aho-Corasick)."""

    def __init__(self, values: SearchedValues) -> None:
        patterns: dict[bytes, tuple[Sought | None, str, bool]] = {}
        for text, sought in values.texts():
            for content, encoding in byte_forms(text).items():
                patterns.setdefault(content, (sought, encoding, text.isdigit()))
        for text in values.longer_texts():
            for content, encoding in byte_forms(text).items():
                patterns.setdefault(content, (None, encoding, text.isdigit()))
        self._patterns = list(patterns.values())
        self._automaton = BytesAhoCorasick(list(patterns)) if patterns else None
        self.margin = 2 + max(map(len, patterns), default=0)

    def find(self, content: bytes) -> list[Hit]:
        """Return the outermost hits; digits next to a number make it another number."""
        if self._automaton is None:
            return []
        hits = []
        matches = self._automaton.find_matches_as_indexes(content.lower(), overlapping=True)
        for index, start, end in matches:
            sought, encoding, is_number = self._patterns[index]
            beside = content[max(0, start - 1) : start] + content[end : end + 1]
            if not (is_number and any(48 <= byte < 58 for byte in beside)):
                hits.append(Hit(start, end, sought, encoding))
        return _outermost(hits)

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


def _outermost(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits that are not part of another; those in a remaining value are shared."""
    outermost: list[Hit] = []
    furthest: Hit | None = None
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end, hit.sought is None)):
        if furthest is None or hit.end > furthest.end:
            furthest = hit
            outermost.append(hit)
        elif furthest.sought is None and hit.sought is not None:
            outermost.append(hit._replace(sought=replace(hit.sought, is_shared=True)))
    return [hit for hit in outermost if hit.sought is not None]
