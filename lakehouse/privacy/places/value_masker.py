"""Masks the values of data subjects in files, with as many bytes.

A process that has the file open continues to read and write it at the same offsets.
"""

import gzip
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.privacy.verifier.values import ByteSearch, SearchedValues
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.tables.masking import mask
from lakehouse.tables.person import INTEGER, Person, is_distinctive, normal_id

_NAMED_VALUE = rb"""(?<![A-Za-z0-9_])%b\\*["'`]?\s{0,3}(?:==?|=>|:)\s{0,3}\\*["'`]?"""
"""A column and the beginning of its value: `customer_id=7`, `"customer_id": "7"`."""
_VALUE = rb"(?P<value>%b)(?![A-Za-z0-9_]|[.][0-9])"
_AROUND_BYTES = 16
_CHUNK_BYTES = 8 << 20
_MARGIN_BYTES = 4096
"""Read around a chunk, for values at its ends and the names of their columns."""


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
        masks = {mask(key, text) or "" for key in masking_keys for text in values | delivered}
        people = [*persons, Person("masked", frozenset(masks))]
        self._search = ByteSearch(SearchedValues(people, shared))
        self._margin = max(_MARGIN_BYTES, 2 * self._search.margin)
        self.short_values = {value for value in values if not is_distinctive(value)}
        self._short = [
            _named_value(column, texts & self.short_values)
            for column, texts in by_column.items()
            if texts & self.short_values
        ]

    def masked(self, content: bytes) -> bytes:
        """Return bytes without the values."""
        changed = bytearray(content)
        for start, end in self._ranges(content):
            changed[start:end] = _filler(content, start, end)
        return bytes(changed)

    def mask_file(self, file: Path, *, is_dry: bool) -> int:
        """Mask the values in a file, and return their number."""
        erased = 0
        with file.open("rb" if is_dry else "r+b", buffering=0) as opened:
            descriptor = opened.fileno()
            for begin in range(0, os.fstat(descriptor).st_size, _CHUNK_BYTES):
                first = max(0, begin - self._margin)
                length = begin - first + _CHUNK_BYTES + self._margin
                content = os.pread(descriptor, length, first)
                for start, end in self._ranges(content):
                    if not begin <= first + start < begin + _CHUNK_BYTES:
                        continue
                    erased += 1
                    if not is_dry:
                        os.pwrite(descriptor, _filler(content, start, end), first + start)
            if erased and not is_dry:
                os.fsync(descriptor)
        return erased

    def mask_gzip(self, file: Path, *, is_dry: bool) -> int:
        """Mask the values in a gzip file, which is replaced, and return their number."""
        content = gzip.decompress(file.read_bytes())
        erased = len(self._ranges(content))
        if erased and not is_dry:
            mode = file.stat().st_mode & 0o777
            replace_bytes(file, gzip.compress(self.masked(content)), mode=mode)
        return erased

    def _ranges(self, content: bytes) -> list[tuple[int, int]]:
        """Return the start and end of each value, in order."""
        ranges = [hit[:2] for hit in self._search.find(content) if not hit.label.is_shared]
        for pattern in self._short:
            ranges += [match.span("value") for match in pattern.finditer(content)]
        merged: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


def _values_by_column(persons: Sequence[Person]) -> Mapping[str, set[str]]:
    columns: dict[str, set[str]] = {}
    for person in persons:
        ids = columns.setdefault(person.subject, set())
        ids.update(normal_id(value) for value in person.ids if value.strip())
        for column, values in person.personal.items():
            texts = (value.strip() for value in values)
            columns.setdefault(column, set()).update(filter(None, texts))
    # These replace a value.
    return {column: values - {ERASED, "0"} for column, values in columns.items()}


def _named_value(column: str, values: Collection[str]) -> re.Pattern[bytes]:
    forms = []
    for value in sorted(values, key=len, reverse=True):
        form = re.escape(value.encode("utf-8", "surrogatepass"))
        forms.append(rb"[+]?0*%b(?:[.]0*)?" % form if re.fullmatch(INTEGER, value) else form)
    name = _NAMED_VALUE % re.escape(column.encode())
    return re.compile(name + _VALUE % b"|".join(forms), re.IGNORECASE)


def _filler(content: bytes, start: int, end: int) -> bytes:
    """Return as many bytes as a value has: 0 in place of a number of JSON."""
    length = end - start
    before = content[max(0, start - _AROUND_BYTES) : start].rstrip()
    after = content[end : end + _AROUND_BYTES].lstrip()
    is_in_json = before.endswith((b":", b"[", b",")) and after.startswith((b",", b"]", b"}"))
    if is_in_json and content[start:end].isdigit():
        return b"0".ljust(length)
    text = ERASED.encode() if length >= len(ERASED) else b""
    return text.ljust(length, b"*")
