"""Overwrites values in a file where they stand: the file stays the same one and as long as it
was, so that whoever has it open goes on to write at its end, and whoever reads it goes on where
he was.

Nothing is left in blocks that a copy would have freed. Killed in between, what is overwritten is
overwritten, and the next call does the rest.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from lakehouse.privacy.places.overwriting import Patch, patches
from lakehouse.privacy.places.value_finder import ValueFinder

_CHUNK_BYTES = 8 << 20
_BESIDE_BYTES = 4096
"""What is read beside a chunk, so that a value at its edge is seen with what stands around it."""


def count_values(finder: ValueFinder, file: Path) -> int:
    """Return how many values stand in a file that would be overwritten."""
    return patch_file(finder, file, is_dry=True)[0]


def patch_file(finder: ValueFinder, file: Path, *, is_dry: bool) -> tuple[int, int]:
    """Overwrite the values in a file, and return how many there were, and how many are left since
    others have them.

    :param is_dry: whether they are counted only.
    """
    if is_dry:
        with file.open("rb") as content:
            return _count(finder, content.fileno())
    with file.open("r+b", buffering=0) as content:
        return _patch(finder, content.fileno())


def _count(finder: ValueFinder, descriptor: int) -> tuple[int, int]:
    found = [(len(here), shared) for here, shared in _chunks(finder, descriptor)]
    return sum(count for count, _ in found), sum(shared for _, shared in found)


def _patch(finder: ValueFinder, descriptor: int) -> tuple[int, int]:
    erased = kept = 0
    for found, shared in _chunks(finder, descriptor):
        for patch in found:
            os.pwrite(descriptor, patch.content, patch.start)
        erased += len(found)
        kept += shared
    if erased:
        os.fsync(descriptor)
    return erased, kept


def _chunks(finder: ValueFinder, descriptor: int) -> Iterator[tuple[list[Patch], int]]:
    """Yield what is to be overwritten of a file, a chunk at a time, by its place in the file."""
    size = os.fstat(descriptor).st_size
    beside = max(_BESIDE_BYTES, 2 * finder.longest)
    for begin in range(0, size, _CHUNK_BYTES):
        # Each chunk begins at an even place, as characters of UTF-16 do.
        first = max(0, begin - beside - beside % 2)
        length = begin - first + _CHUNK_BYTES + beside
        content = os.pread(descriptor, length, first)
        found, shared = patches(finder, content)
        in_chunk = range(begin - first, begin - first + _CHUNK_BYTES)
        here = [
            Patch(first + patch.start, first + patch.end, patch.content)
            for patch in found
            if patch.start in in_chunk
        ]
        yield here, sum(start in in_chunk for start in shared)
