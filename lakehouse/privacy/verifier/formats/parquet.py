"""Parquet: data by column and row group, dictionaries, statistics of the footer."""

from collections.abc import Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.privacy.verifier.arrow_columns import search_column
from lakehouse.privacy.verifier.search_state import FilePart

_BATCH_ROWS = 64 * 1024
_DICTIONARY_BATCH_ROWS = 1024 * 1024
"""Each batch comes with all values of the dictionary so far, which are searched each time."""
_BYTES = "BYTE_ARRAY"
_FIELD_ID = b"PARQUET:field_id"
_READ_PLAIN = frozenset({"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"})


def read_parquet(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search what a Parquet file says, column by column.

    :raises pyarrow.ArrowException: where it is none, or damaged.
    """
    metadata = pq.read_metadata(file)
    file.seek(0)
    with_dictionary = _with_dictionary(metadata)
    with pq.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=with_dictionary,
        page_checksum_verification=True,
    ) as parquet:
        first_row = 1
        names = {field.name: _name(field, part) for field in parquet.schema_arrow}
        for group in range(metadata.num_row_groups):
            within = part.within(f"row group {group}")
            _search_footer(metadata.row_group(group), names, within)
            rows = metadata.row_group(group).num_rows
            if rows <= _BATCH_ROWS:
                # Each read takes a millisecond, however few rows it is of.
                _search_group(parquet, group, None, first_row, within, _BATCH_ROWS)
            for name in parquet.schema_arrow.names if rows > _BATCH_ROWS else ():
                most = _DICTIONARY_BATCH_ROWS if name in with_dictionary else _BATCH_ROWS
                _search_group(parquet, group, [name], first_row, within, most)
            first_row += rows


def _with_dictionary(metadata: pq.FileMetaData) -> list[str]:
    """Return the columns of texts that are read as dictionaries, whose values are searched
    once, whether a row has them or not.

    Arrow reads no page as a dictionary that is encoded by what texts have in common.
    """
    chunks = [
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    ]
    refused = {
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type != _BYTES or _READ_PLAIN.intersection(chunk.encodings)
    }
    nested = {chunk.path_in_schema for chunk in chunks if "." in chunk.path_in_schema}
    paths = {chunk.path_in_schema for chunk in chunks}
    return sorted(paths - refused - nested)


def _search_group(
    parquet: pq.ParquetFile,
    group: int,
    columns: list[str] | None,
    first_row: int,
    part: FilePart,
    batch_rows: int,
) -> None:
    row = first_row
    batches = parquet.iter_batches(batch_rows, row_groups=[group], columns=columns)
    for batch in batches:
        for index, field in enumerate(batch.schema):
            search_column(part, [_name(field, part)], batch.column(index), row)
        row += batch.num_rows


def _name(field: "pa.Field[Any]", part: FilePart) -> str:
    return part.column_name(field.name, (field.metadata or {}).get(_FIELD_ID))


def _search_footer(
    group: pq.RowGroupMetaData, names: Mapping[str, str], part: FilePart
) -> None:
    """Compare the bounds of declared columns, and name their bloom filters."""
    for number in range(group.num_columns):
        column = group.column(number)
        top, *inner = column.path_in_schema.split(".")
        path = [names.get(top, top), *inner]
        if not part.compares(path):
            continue
        if column.bloom_filter_offset is not None:  # type: ignore[attr-defined]
            what = f"the bloom filter of column {column.path_in_schema}: it holds no values"
            part.gap("not provable", what, is_blocking=False)
        statistics = column.statistics
        if statistics is not None and statistics.has_min_max:
            bounds = pa.array([statistics.min, statistics.max])
            search_column(part, path, bounds, None, "statistics of the footer")
