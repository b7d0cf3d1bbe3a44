"""Rewrites a data file without some of its rows, one row group at a time; no JVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.io import OutputFile
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_METRICS = "write.metadata.metrics.column."


def rewrite_without(
    table: "Table", file: "DataFile", positions: "pa.Array[Any]"
) -> "DataFile | None":
    """Rewrite a data file without some rows; None if no row remains."""
    import pyarrow.parquet as pq

    if len(positions) == file.record_count:
        return None
    path = table.location_provider().new_data_location(f"{uuid4()}.parquet")
    output = table.io.new_output(path)
    # PyIceberg's streams are files to PyArrow, and are declared as something of their own.
    stream: Any
    with table.io.new_input(file.file_path).open() as stream, pq.ParquetFile(stream) as before:
        footer = _write(table, before, output, positions)
        return _entry(table, file, output, footer, before.schema_arrow)


def _write(
    table: "Table", before: "pq.ParquetFile", output: "OutputFile", positions: "pa.Array[Any]"
) -> "pq.FileMetaData":
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    omitted = positions.to_numpy(zero_copy_only=False)
    schema = before.schema_arrow.remove_metadata()
    properties = _properties_by_name_in_file(table, schema)
    footers: list[pq.FileMetaData] = []
    stream: Any
    with (
        output.create() as stream,
        pq.ParquetWriter(
            stream,
            schema,
            compression=_codec(before),
            use_dictionary=_with_dictionary(before),  # type: ignore[arg-type]  # or False
            # A column without metrics in manifests has none in the footer either.
            write_statistics=_columns_with_statistics(properties, schema),
            store_schema=False,
            metadata_collector=footers,
        ) as writer,
    ):
        start = 0
        for number in range(before.num_row_groups):
            rows = before.read_row_group(number)
            end = start + rows.num_rows
            is_written = np.ones(rows.num_rows, dtype=bool)
            is_written[omitted[(omitted >= start) & (omitted < end)] - start] = False
            remaining = rows.filter(pa.array(is_written))
            if remaining.num_rows:
                writer.write_table(remaining.replace_schema_metadata(None))
            start = end
    return footers[0]


def _codec(file: "pq.ParquetFile") -> Any:
    codec = str(file.metadata.row_group(0).column(0).compression).lower()
    return "none" if codec == "uncompressed" else codec


def _with_dictionary(file: "pq.ParquetFile") -> list[str] | bool:
    """Return the columns that have dictionaries. Spark omits them for distinct values; with
    PyArrow's default, files would be a fifth larger.
    """
    metadata = file.metadata
    columns = set()
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            if any("DICTIONARY" in encoding for encoding in chunk.encodings):
                columns.add(chunk.path_in_schema)
    return sorted(columns) or False


def _properties_by_name_in_file(table: "Table", schema: "pa.Schema") -> dict[str, str]:
    """Return a table's properties, with the metrics of columns that have a former or an escaped
    name in a file.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    properties = dict(table.properties)
    for field in pyarrow_to_schema(schema, table.name_mapping()).fields:
        name = table.schema().find_column_name(field.field_id)
        if metrics := table.properties.get(f"{_METRICS}{name}"):
            properties[f"{_METRICS}{field.name}"] = metrics
    return properties


def _columns_with_statistics(
    properties: Mapping[str, str], schema: "pa.Schema"
) -> list[str] | bool:
    named = [name for name in schema.names if properties.get(f"{_METRICS}{name}") != "none"]
    return True if len(named) == len(schema.names) else named


def _entry(
    table: "Table",
    file: "DataFile",
    output: "OutputFile",
    footer: "pq.FileMetaData",
    schema: "pa.Schema",
) -> "DataFile":
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
        pyarrow_to_schema,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    of_file = pyarrow_to_schema(schema, table.name_mapping())
    statistics = data_file_statistics_from_parquet_metadata(
        footer,
        compute_statistics_plan(of_file, _properties_by_name_in_file(table, schema)),
        parquet_path_to_id_mapping(of_file),
    )
    entry = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=file.partition,
        file_size_in_bytes=len(output),
        sort_order_id=file.sort_order_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    entry.spec_id = file.spec_id
    return entry
