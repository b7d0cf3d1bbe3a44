"""Split the files of a partition into disjoint column ranges, so that a row predicate selects
only some of them; no JVM.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.manifests import read_manifests, readable

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_ORDERED = ("int", "long", "date", "timestamp", "timestamptz")
"""Types whose bounds in manifests are exact integers."""


@dataclass(frozen=True)
class FileRange:
    """The range of a column in some files, as integers from manifests, and their size."""

    low: int
    high: int
    size_bytes: int


@dataclass(frozen=True)
class ColumnRange:
    """Values of a column from `low` to `high`, and the size of the files that contain them."""

    column: str
    low: Any
    high: Any
    size_bytes: int


def split_by_column(
    table: "Table", paths: Collection[str], other_paths: Collection[str], chunk_bytes: int
) -> list[ColumnRange]:
    """Split data files by the best column into ranges, so that each file belongs to one range.

    Returns a single range, or none, if no column is suitable. Ranges have at most
    `chunk_bytes`, unless files overlap.

    :param paths: the files.
    :param other_paths: other files that a range's predicate can match; they also belong to one
        range.
    """
    files = _read_files(table, {*paths, *other_paths})
    own = [file for path, file in files.items() if path in paths]
    rest = [file for path, file in files.items() if path not in paths]
    splits = []
    for field in table.schema().fields:
        column_type = str(field.field_type)
        if column_type in _ORDERED:
            file_ranges = _file_ranges(own, rest, field.field_id)
            split = merge_ranges(file_ranges, chunk_bytes)
            splits.append(_ranges(field.name, column_type, split))
    return min(
        (ranges for ranges in splits if ranges),
        key=lambda ranges: (max(chunk_bytes, *map(_size, ranges)), len(ranges)),
        default=[],
    )


def merge_ranges(file_ranges: Iterable[FileRange], chunk_bytes: int) -> list[FileRange]:
    """Merge overlapping ranges, and adjacent ones up to `chunk_bytes`."""
    apart: list[FileRange] = []
    for file_range in sorted(file_ranges, key=lambda file_range: file_range.low):
        if apart and file_range.low <= apart[-1].high:
            apart[-1] = _joined(apart[-1], file_range)
        else:
            apart.append(file_range)
    chunks: list[FileRange] = []
    for file_range in apart:
        if chunks and chunks[-1].size_bytes + file_range.size_bytes <= chunk_bytes:
            chunks[-1] = _joined(chunks[-1], file_range)
        else:
            chunks.append(file_range)
    return chunks


def _joined(first: FileRange, second: FileRange) -> FileRange:
    return FileRange(
        first.low,
        max(first.high, second.high),
        first.size_bytes + second.size_bytes,
    )


def _size(column_range: ColumnRange) -> int:
    return column_range.size_bytes


def _read_files(table: "Table", paths: Collection[str]) -> "Mapping[str, DataFile]":
    files = {}
    for manifest in read_manifests(table):
        if manifest.content != 0:
            continue
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.data_file.file_path in paths:
                files[entry.data_file.file_path] = entry.data_file
    return files


def _file_ranges(
    own: "Sequence[DataFile]", other_paths: "Sequence[DataFile]", field_id: int
) -> list[FileRange]:
    """Return the ranges of some files and of overlapping other files; empty if a file has no
    bounds, such as one with only NULL, which no range would select.
    """
    file_ranges = [_file_range(file, field_id) for file in (*own, *other_paths)]
    known = [file_range for file_range in file_ranges if file_range is not None]
    if len(known) < len(file_ranges):
        return []
    own_ranges = known[: len(own)]
    low = min(file_range.low for file_range in own_ranges)
    high = max(file_range.high for file_range in own_ranges)
    overlapping = [
        file_range
        for file_range in known[len(own) :]
        if file_range.low <= high and file_range.high >= low
    ]
    return [*own_ranges, *overlapping]


def _file_range(file: "DataFile", field_id: int) -> FileRange | None:
    low = (file.lower_bounds or {}).get(field_id)
    high = (file.upper_bounds or {}).get(field_id)
    if low is None or high is None:
        return None
    return FileRange(_number(low), _number(high), file.file_size_in_bytes)


def _number(bound: bytes) -> int:
    # Of any width, since the column type can have been widened.
    return int.from_bytes(bound, "little", signed=True)


def _ranges(
    column: str, column_type: str, file_ranges: Iterable[FileRange]
) -> list[ColumnRange]:
    """Convert integer ranges to values; empty if Python cannot represent one."""
    ranges = []
    for file_range in file_ranges:
        low, high = (
            readable(file_range.low, column_type),
            readable(file_range.high, column_type),
        )
        if _is_cut(low) or _is_cut(high):
            return []
        ranges.append(ColumnRange(column, low, high, file_range.size_bytes))
    return ranges


def _is_cut(value: Any) -> bool:
    """Whether a date or timestamp can be clamped to Python's range."""
    return isinstance(value, date) and value.year in (MINYEAR, MAXYEAR)
