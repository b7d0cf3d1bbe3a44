"""Many values are searched in each byte in one pass (Aho-Corasick)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np
from ahocorasick_rs import BytesAhoCorasick

from lakehouse.privacy.verifier.byte_forms import ByteForm, byte_forms
from lakehouse.privacy.verifier.sought_values import Sought, SoughtValues

CHUNK_BYTES = 4 * 1024 * 1024
_BESIDE = 4
"""Bytes beside a hit that are looked at, and some more."""
_SEPARATOR = b"\0\0"
"""Between texts that are searched at once: no value has it."""


class Hit(NamedTuple):
    """Where a form of a value stands; `sought` is None for a value of somebody who remains."""

    start: int
    end: int
    sought: Sought | None
    encoding: str


@dataclass(frozen=True)
class _Pattern:
    form: ByteForm
    sought: Sought | None
    is_number: bool


class ByteSearch:
    """Finds the distinctive values in bytes, and what truncated bounds keep of them."""

    def __init__(self, values: SoughtValues) -> None:
        self._patterns = _unique(_patterns(values))
        searched = [pattern.form.content.lower() for pattern in self._patterns]
        self._automaton = BytesAhoCorasick(searched) if searched else None
        self.longest = max(map(len, searched), default=1)

    def find(self, content: bytes, *, in_longer_numbers: bool = False) -> list[Hit]:
        """Return the hits in bytes that lie within no other hit.

        A number beside further digits is another number, such as a snapshot's id.

        :param in_longer_numbers: count it all the same: what stands side by side in a page of
            a database may be two values.
        """
        end = len(content)
        hits = [
            hit
            for hit, pattern in self._matches(content)
            if in_longer_numbers or not _continues(hit, pattern, content, 0, end)
        ]
        return _outermost(hits)

    def find_in_values(self, content: bytes, edges: Sequence[int]) -> list[tuple[int, Hit]]:
        """Return the hits that lie in one of the values that stand side by side, with the
        number of the value.

        :param edges: where each value begins, then where the last one ends.
        """
        borders = np.asarray(edges)
        hits = []
        for hit, pattern in self._matches(content):
            number = int(np.searchsorted(borders, hit.start, side="right")) - 1
            begin, end = int(borders[number]), int(borders[number + 1])
            if hit.end <= end and not _continues(hit, pattern, content, begin, end):
                hits.append(hit)
        outermost = _outermost(hits)
        numbers = np.searchsorted(borders, [hit.start for hit in outermost], side="right") - 1
        return list(zip(numbers.tolist(), outermost, strict=True))

    def find_in_texts(self, texts: Iterable[bytes]) -> list[tuple[int, Hit]]:
        """Return the hits in texts, with the number of the text; those are searched at
        once.
        """
        edges = [0]
        parts = []
        for text in texts:
            parts.append(text)
            edges.append(edges[-1] + len(text) + len(_SEPARATOR))
        return self.find_in_values(_SEPARATOR.join(parts) + _SEPARATOR, edges)

    def find_in_file(
        self,
        file: BinaryIO,
        size_bytes: int,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        in_longer_numbers: bool = False,
    ) -> Iterator[Hit]:
        """Yield the hits in the next bytes of a file, which is read once.

        Windows overlap, so that a value on the border of two is found, once.
        """
        margin = self.longest + _BESIDE
        window = b""
        window_start = decided_end = 0
        while True:
            chunk = file.read(min(chunk_bytes, size_bytes)) if size_bytes else b""
            size_bytes -= len(chunk)
            window += chunk
            window_end = window_start + len(window)
            # What goes on in the next chunk, or is covered by more there, is decided then.
            limit = window_end - margin if chunk else window_end
            for hit in self.find(window, in_longer_numbers=in_longer_numbers):
                start, end = hit.start + window_start, hit.end + window_start
                if decided_end < end <= limit:
                    yield hit._replace(start=start, end=end)
            decided_end = max(decided_end, limit)
            if not chunk:
                return
            window = window[-2 * margin :]
            window_start = window_end - len(window)

    def _matches(self, content: bytes) -> Iterator[tuple[Hit, _Pattern]]:
        if self._automaton is None:
            return
        lowered = content.lower()
        found = self._automaton.find_matches_as_indexes(lowered, overlapping=True)
        for index, start, end in found:
            pattern = self._patterns[index]
            form = pattern.form
            if not form.is_exact or content[start:end] == form.content:
                yield Hit(start, end, pattern.sought, form.encoding), pattern


def _patterns(values: SoughtValues) -> Iterator[_Pattern]:
    for text in values.texts():
        for form in byte_forms(text.text):
            yield _Pattern(form, text.sought, text.text.isdigit())
    for value in values.longer_values():
        for form in byte_forms(value):
            yield _Pattern(form, None, value.isdigit())


def _unique(patterns: Iterable[_Pattern]) -> list[_Pattern]:
    """Return the patterns without those that search the same; of two people with one value, the
    first is named.
    """
    unique: dict[tuple[bytes, bool], _Pattern] = {}
    for pattern in patterns:
        form = pattern.form
        searched = form.content if form.is_exact else form.content.lower()
        unique.setdefault((searched, pattern.sought is None), pattern)
    return list(unique.values())


def _continues(hit: Hit, pattern: _Pattern, content: bytes, begin: int, end: int) -> bool:
    """Whether digits stand before or after a number, within the value that begins and ends
    there.
    """
    if not pattern.is_number:
        return False
    before = content[max(begin, hit.start - 2) : hit.start]
    after = content[hit.end : min(end, hit.end + 2)]
    if hit.encoding == "UTF-8":
        return before[-1:].isdigit() or after[:1].isdigit()
    if hit.encoding == "UTF-16":
        # The form begins and ends with a digit, of either byte order.
        return _is_digit_and_zero(before) or _is_digit_and_zero(after[::-1])
    return False


def _is_digit_and_zero(pair: bytes) -> bool:
    return len(pair) == 2 and pair[:1].isdigit() and pair[1] == 0


def _outermost(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits that lie within no other; what lies within the value of somebody who
    remains is shared.
    """
    outermost: list[Hit] = []
    furthest: Hit | None = None
    for hit in sorted(hits, key=_outside_in):
        if furthest is None or hit.end > furthest.end:
            furthest = hit
            outermost.append(hit)
        elif furthest.sought is None and hit.sought is not None:
            outermost.append(hit._replace(sought=hit.sought.shared()))
    return [hit for hit in outermost if hit.sought is not None]


def _outside_in(hit: Hit) -> tuple[int, int, bool]:
    return hit.start, -hit.end, hit.sought is None
