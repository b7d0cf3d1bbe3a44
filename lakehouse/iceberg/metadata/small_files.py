"""Which data files are small, and how many files their compaction saves."""

from math import ceil

SMALL_SHARE = 0.75
"""Iceberg's default share of the target size below which a file is small; compaction selects
files by that default.
"""


def is_small(size_bytes: int, target_bytes: int) -> bool:
    """Return whether compaction merges a data file of this size."""
    return size_bytes < SMALL_SHARE * target_bytes


def fewer_files(small_files: int, small_bytes: int, target_bytes: int) -> int:
    """Return the number of data files that compaction of small files would save."""
    joined = max(1, ceil(small_bytes / target_bytes))
    return max(0, small_files - joined)
