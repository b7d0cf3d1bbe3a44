"""Ranges of a column's values that tell the files of a partition apart, so that a predicate of
rows names some files and leaves the others out; no JVM.
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
"""Types whose bounds in manifests are whole numbers, and exact."""


@dataclass(frozen=True)
class Span:
    """The values of a column in some files, as manifests hold them, and the files' size."""

    low: int
    high: int
    size_bytes: int


@dataclass(frozen=True)
class ColumnRange:
    """Values of a column, from `low` to `high`, and the size of the files that have them."""

    column: str
    low: Any
    high: Any
    size_bytes: int


def split_by_column(
    table: "Table", paths: Collection[str], others: Collection[str], chunk_bytes: int
) -> list[ColumnRange]:
    """Split some data files by the column that does it best, so that each file has values of
    one range only; a single range, or none, where no column does.

    Ranges have at most `chunk_bytes`, unless files overlap.

    :param paths: the files.
    :param others: files that the predicate of a range may name too; they are not to be in two.
    """
    files = _read_files(table, {*paths, *others})
    own = [file for path, file in files.items() if path in paths]
    rest = [file for path, file in files.items() if path not in paths]
    splits = []
    for field in table.schema().fields:
        column_type = str(field.field_type)
        if column_type in _ORDERED:
            spans = _spans(own, rest, field.field_id)
            split = join_spans(spans, chunk_bytes)
            splits.append(_ranges(field.name, column_type, split))
    return min(
        (ranges for ranges in splits if ranges),
        key=lambda ranges: (max(chunk_bytes, *map(_size, ranges)), len(ranges)),
        default=[],
    )


def join_spans(spans: Iterable[Span], chunk_bytes: int) -> list[Span]:
    """Join spans into such that do not overlap, and neighbours up to `chunk_bytes`."""
    apart: list[Span] = []
    for span in sorted(spans, key=lambda span: span.low):
        if apart and span.low <= apart[-1].high:
            apart[-1] = _joined(apart[-1], span)
        else:
            apart.append(span)
    chunks: list[Span] = []
    for span in apart:
        if chunks and chunks[-1].size_bytes + span.size_bytes <= chunk_bytes:
            chunks[-1] = _joined(chunks[-1], span)
        else:
            chunks.append(span)
    return chunks


def _joined(first: Span, second: Span) -> Span:
    return Span(
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


def _spans(
    own: "Sequence[DataFile]", others: "Sequence[DataFile]", field_id: int
) -> list[Span]:
    """Return the spans of some files, and of the others that lie among them; none where one
    has no bounds, such as one of NULL alone, which no range would name.
    """
    spans = [_span(file, field_id) for file in (*own, *others)]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return []
    own_spans = known[: len(own)]
    low = min(span.low for span in own_spans)
    high = max(span.high for span in own_spans)
    among = [span for span in known[len(own) :] if span.low <= high and span.high >= low]
    return [*own_spans, *among]


def _span(file: "DataFile", field_id: int) -> Span | None:
    low = (file.lower_bounds or {}).get(field_id)
    high = (file.upper_bounds or {}).get(field_id)
    if low is None or high is None:
        return None
    return Span(_number(low), _number(high), file.file_size_in_bytes)


def _number(bound: bytes) -> int:
    # Of any width: the column may have become wider since.
    return int.from_bytes(bound, "little", signed=True)


def _ranges(column: str, column_type: str, spans: Iterable[Span]) -> list[ColumnRange]:
    """Return spans as ranges of values; none where Python knows one of the values not."""
    ranges = []
    for span in spans:
        low, high = readable(span.low, column_type), readable(span.high, column_type)
        if _is_cut(low) or _is_cut(high):
            return []
        ranges.append(ColumnRange(column, low, high, span.size_bytes))
    return ranges


def _is_cut(value: Any) -> bool:
    """Whether a day or moment may stand for one before or after the years of Python."""
    return isinstance(value, date) and value.year in (MINYEAR, MAXYEAR)
