"""Finds values in bytes, whatever they are of: one pass for all of them and their forms."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import ahocorasick_rs

from lakehouse.privacy.places.packed_text import may_have_packed
from lakehouse.privacy.places.value_forms import Form, forms_of
from lakehouse.privacy.places.wanted_values import WantedValues
from lakehouse.tables.person import is_distinctive

_AROUND = 2
"""Characters on each side of a number that tell whether it is a part of another."""
_AFTER_CUT = ("…".encode(), b"...", b"\\u2026", b'"', b"'", b"\\", b"\n", b"\r", b"<")
"""What stands behind a value that was cut: a mark of that, or the end of its text."""
_AROUND_CUT = 8
_QUOTE = rb"""\\*["'`]"""
_NAMED = (
    rb"(?<![A-Za-z0-9_])(?P<column>%b)(?:%b)?"
    rb"\s{0,3}(?:==?|=>|:)\s{0,3}"
    rb"(?:(?P<quote>%b)(?P<quoted>.{1,400}?)(?P=quote)"
    rb"|(?P<plain>[^\s,;&|\"'`\\\[\](){}<>]{1,400}))"
)
"""A column's name and its value: `customer_id=7`, `"customer_id": "7"`, `customer_id = '7'`."""

Interval = tuple[int, int]


@dataclass(frozen=True)
class Span:
    """Where a value stands, and in which form."""

    start: int
    end: int
    form: Form


@dataclass(frozen=True)
class Found:
    """What was found in some bytes: in order, and none overlaps another."""

    spans: tuple[Span, ...] = ()
    shared: tuple[Interval, ...] = ()
    """Where values stand that are left, since others have them."""


@dataclass(frozen=True)
class ValueFinder:
    """Searches the values of some persons."""

    wanted: WantedValues

    def may_hold(self, content: bytes) -> bool:
        """Whether there is anything to look at: a value, the name of a column, or text that is
        packed.
        """
        return bool(self._automaton.find_matches_as_indexes(content)) or may_have_packed(
            content
        )

    def find(self, content: bytes) -> Found:
        """Return where values stand that are to go."""
        spans: list[Span] = []
        kept: dict[Interval, bool] = {}
        has_column = False
        found = self._automaton.find_matches_as_indexes(content.lower(), overlapping=True)
        for index, start, end in found:
            pattern = self._patterns[index]
            if isinstance(pattern, Form):
                span = _extended(content, Span(start, end, pattern))
                if _is_of_its_form(content, span):
                    spans.append(span)
            elif pattern is None:
                has_column = True
            else:
                kept[start, end] = pattern or kept.get((start, end), False)
        if has_column:
            spans += self._named(content, kept)
        return _resolved(spans, kept)

    @cached_property
    def longest(self) -> int:
        """How many bytes the longest form has."""
        return max(map(len, self._by_bytes), default=0)

    def _named(self, content: bytes, kept: dict[Interval, bool]) -> Iterator[Span]:
        """Yield the values that stand behind the name of their column."""
        for match in self._of_a_column.finditer(content):
            part = "plain" if match["quoted"] is None else "quoted"
            column, text = match["column"].decode(), match[part].decode(errors="replace")
            if not self.wanted.holds(column, text):
                continue
            if self.wanted.is_shared(text):
                kept[match.span(part)] = True
            else:
                yield Span(*match.span(part), Form(match[part], "bytes"))

    @cached_property
    def _by_bytes(self) -> Mapping[bytes, Form | bool | None]:
        """Return what each searched pattern stands for: the form of a value; whether a value
        that is kept is one of the persons'; None for the name of a column.
        """
        patterns: dict[bytes, Form | bool | None] = {}
        for column in self.wanted.columns:
            patterns[column.encode().lower()] = None
        for value in sorted(filter(is_distinctive, self.wanted.shared)):
            for form in forms_of(value):
                if not form.rest:
                    patterns[form.pattern.lower()] = self.wanted.is_of_persons(value)
        for value in sorted(self.wanted.distinctive):
            for form in forms_of(value):
                patterns.setdefault(form.pattern.lower(), form)
        return patterns

    @cached_property
    def _patterns(self) -> list[Form | bool | None]:
        return list(self._by_bytes.values())

    @cached_property
    def _automaton(self) -> ahocorasick_rs.BytesAhoCorasick:
        # Others take minutes to be made where a value has thousands of characters.
        kind = ahocorasick_rs.Implementation.ContiguousNFA
        return ahocorasick_rs.BytesAhoCorasick(list(self._by_bytes), implementation=kind)

    @cached_property
    def _of_a_column(self) -> re.Pattern[bytes]:
        names = sorted(self.wanted.columns, key=len, reverse=True)
        columns = b"|".join(re.escape(name.encode()) for name in names)
        return re.compile(_NAMED % (columns, _QUOTE, _QUOTE), re.DOTALL)


def _extended(content: bytes, span: Span) -> Span:
    """Return the beginning of a value as far as it goes."""
    end = span.end
    for expected in span.form.rest.lower():
        if content[end : end + 1].lower() != bytes([expected]):
            break
        end += 1
    return Span(span.start, end, span.form)


def _is_of_its_form(content: bytes, span: Span) -> bool:
    if span.form.rest:
        # Where another letter follows it is somebody else's.
        following = content[span.end : span.end + _AROUND_CUT]
        return not following or following.startswith(_AFTER_CUT)
    if span.form.is_exact:
        return content[span.start : span.end] == span.form.pattern
    return _is_aligned(content, span) and _is_whole(content, span)


def _is_aligned(content: bytes, span: Span) -> bool:
    """Whether characters of two bytes are read as they were written: between others they look
    like those of the other order, one byte aside.
    """
    if span.start % 2 == 0 or not span.form.encoding.startswith("utf-16"):
        return True
    if span.form.encoding == "utf-16-be":
        return content[span.end : span.end + 1] != b"\0"
    return content[span.start - 1 : span.start] != b"\0"


def _is_whole(content: bytes, span: Span) -> bool:
    """Whether digits are no part of a longer number; other values are none."""
    if not span.form.is_number:
        return True
    before, after = _around(content, span)
    return not (before[-1:].isdigit() or after[:1].isdigit())


def _around(content: bytes, span: Span) -> tuple[bytes, bytes]:
    """Return what stands before and after, a byte a character."""
    start, end, encoding = span.start, span.end, span.form.encoding
    if encoding == "bytes":
        return content[max(0, start - _AROUND) : start], content[end : end + _AROUND]
    first = max(start % 2, start - 2 * _AROUND)
    before, after = content[first:start], content[end : end + 2 * _AROUND]
    return _in_one_byte(before, encoding), _in_one_byte(after, encoding)


def _in_one_byte(content: bytes, encoding: str) -> bytes:
    return content.decode(encoding, "replace").encode("latin-1", "replace")


def _resolved(spans: Iterable[Span], kept: Mapping[Interval, bool]) -> Found:
    """Return the spans that are to go, of those that overlap one that covers all; without those
    that stand within what others have.
    """
    explaining = {interval for interval, is_of_persons in kept.items() if is_of_persons}
    waiting = deque(sorted(kept))
    furthest: Interval = (0, 0)
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        while waiting and waiting[0][0] <= span.start:
            furthest = max(furthest, waiting.popleft(), key=itemgetter(1))
        if span.end <= furthest[1]:
            explaining.add(furthest)
        elif merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.form)
        else:
            merged.append(span)
    return Found(tuple(merged), tuple(explaining))
