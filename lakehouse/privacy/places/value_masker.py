"""Masks the values of data subjects in files, with as many bytes.

A process that has the file open continues to read and write it at the same offsets.
"""

import gzip
import mmap
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.privacy.verifier.values import ByteSearch, Hit, SearchedValues
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.tables.masking import mask
from lakehouse.tables.person import INTEGER, Person, is_distinctive, normal_id

_NAMED_VALUE = rb"""(?<![A-Za-z0-9_])%b\\*["'`]?\s{0,3}(?:==?|=>|:)\s{0,3}\\*["'`]?"""
"""A column and the beginning of its value: `customer_id=7`, `"customer_id": "7"`."""
_VALUE = rb"(?P<value>%b)(?![A-Za-z0-9_]|[.][0-9])"
_AROUND_BYTES = 16
_Span = tuple[int, int]


class ValueMasker:
    """Finds values that are distinctive anywhere, and others after the name of their column.

    :param shared: personal values that another person has too; they stay.
    :param masking_keys: the keys of masked samples; the masks of the values are erased too.
    """

    def __init__(
        self,
        persons: Sequence[Person],
        shared: Collection[str],
        masking_keys: Collection[bytes],
    ) -> None:
        by_column = _values_by_column(persons)
        values = {value for texts in by_column.values() for value in texts} - {*shared}
        delivered = {value for person in persons for value in person.ids}
        masks = {mask(key, one) or "" for key in masking_keys for one in values | delivered}
        people = [*persons, Person("masked", frozenset(masks))]
        self._search = ByteSearch(SearchedValues(people, shared))
        self.short_values = {value for value in values if not is_distinctive(value)}
        self._short = [
            _named_value(column, texts & self.short_values)
            for column, texts in by_column.items()
            if texts & self.short_values
        ]

    def masked(self, content: bytes) -> bytes:
        """Return bytes without the values."""
        changed = bytearray(content)
        for start, end in self._spans(content)[0]:
            changed[start:end] = _filler(content, start, end)
        return bytes(changed)

    def mask_file(self, file: Path, *, is_dry: bool) -> tuple[int, int]:
        """Mask the values in a file; return how many, and how many shared ones stay."""
        if file.stat().st_size == 0:
            return 0, 0
        with file.open("rb" if is_dry else "r+b", buffering=0) as opened:
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
                spans, shared = self._spans(content)
                fillers = [_filler(content, start, end) for start, end in spans]
            if not is_dry and spans:
                for (start, _), filler in zip(spans, fillers, strict=True):
                    os.pwrite(opened.fileno(), filler, start)
                os.fsync(opened.fileno())
        return len(spans), shared

    def mask_gzip(self, file: Path, *, is_dry: bool) -> tuple[int, int]:
        """Mask the values in a gzip file, which is replaced."""
        content = gzip.decompress(file.read_bytes())
        spans, shared = self._spans(content)
        if spans and not is_dry:
            mode = file.stat().st_mode & 0o777
            replace_bytes(file, gzip.compress(self.masked(content)), mode=mode)
        return len(spans), shared

    def _spans(self, content: bytes | mmap.mmap) -> tuple[list[_Span], int]:
        """Return where values are, in order, and how many others are shared."""
        found: list[_Span] = []
        shared = 0
        if isinstance(content, bytes):
            hits: Iterable[Hit] = self._search.find(content)
        else:
            hits = self._search.find_in_file(cast(BinaryIO, content), len(content))
        for hit in hits:
            if hit.sought and hit.sought.is_shared:
                shared += 1
            else:
                found.append((hit.start, hit.end))
        found += self._short_values(content)
        merged: list[_Span] = []
        for start, end in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged, shared

    def _short_values(self, content: bytes | mmap.mmap) -> Iterator[_Span]:
        for pattern in self._short:
            for match in pattern.finditer(content):
                yield match.span("value")


def _values_by_column(persons: Sequence[Person]) -> Mapping[str, set[str]]:
    columns: dict[str, set[str]] = {}
    for person in persons:
        ids = columns.setdefault(person.subject, set())
        ids.update(normal_id(value) for value in person.ids if value.strip())
        for column, values in person.personal.items():
            texts = (value.strip() for value in values)
            columns.setdefault(column, set()).update(filter(None, texts))
    # What stands in place of a value.
    return {column: values - {ERASED, "0"} for column, values in columns.items()}


def _named_value(column: str, values: Collection[str]) -> re.Pattern[bytes]:
    forms = []
    for value in sorted(values, key=len, reverse=True):
        form = re.escape(value.encode("utf-8", "surrogatepass"))
        forms.append(rb"[+]?0*%b(?:[.]0*)?" % form if re.fullmatch(INTEGER, value) else form)
    name = _NAMED_VALUE % re.escape(column.encode())
    return re.compile(name + _VALUE % b"|".join(forms), re.IGNORECASE)


def _filler(content: bytes | mmap.mmap, start: int, end: int) -> bytes:
    """Return as many bytes as a value has: 0 in place of a number of JSON."""
    length = end - start
    before = content[max(0, start - _AROUND_BYTES) : start].rstrip()
    after = content[end : end + _AROUND_BYTES].lstrip()
    is_number = content[start:end].isdigit()
    if (
        is_number
        and before.endswith((b":", b"[", b","))
        and after.startswith((b",", b"]", b"}"))
    ):
        return b"0".ljust(length)
    text = ERASED.encode() if length >= len(ERASED) else b""
    return text.ljust(length, b"*")
