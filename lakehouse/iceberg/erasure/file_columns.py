"""Reads some columns of one data file, matched by field id; no JVM."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.arrow_ids import Values

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField

ReadColumns = Callable[["Sequence[NestedField]"], dict[int, Values]]
"""Reads columns of a data file; returns those that the file has, by field id."""
_FIELD_ID = b"PARQUET:field_id"


@contextmanager
def open_columns(table: "Table", file: "DataFile") -> Iterator[ReadColumns]:
    """Open a data file.

    :raises ValueError: of PyIceberg, if only Spark reads files of this format.
    """
    import pyarrow.parquet as pq
    from pyiceberg.manifest import FileFormat

    if file.file_format != FileFormat.PARQUET:
        yield partial(_read_by_pyiceberg, table, file)
        return
    # PyIceberg's streams are files to PyArrow, and are declared as something of their own.
    stream: Any
    with table.io.new_input(file.file_path).open() as stream, pq.ParquetFile(stream) as opened:
        yield partial(_read_parquet, opened)


def _read_parquet(file: "pq.ParquetFile", fields: "Sequence[NestedField]") -> dict[int, Values]:
    """Match columns by field id; by name in a file that has no ids."""
    names = {}
    for in_file in file.schema_arrow:
        field_id = (in_file.metadata or {}).get(_FIELD_ID)
        for field in fields:
            is_it = (
                in_file.name == field.name
                if field_id is None
                else int(field_id) == field.field_id
            )
            if is_it:
                names[field.field_id] = in_file.name
    if not names:
        return {}
    # Other files are read in parallel: more threads would cost more than they save.
    read = file.read(columns=list(names.values()), use_threads=False)
    return {field_id: read.column(name) for field_id, name in names.items()}


def _read_by_pyiceberg(
    table: "Table", file: "DataFile", fields: "Sequence[NestedField]"
) -> dict[int, Values]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask

    optional = [field.model_copy(update={"required": False}) for field in fields]
    scan = ArrowScan(table.metadata, table.io, Schema(*optional), AlwaysTrue())
    rows = scan.to_table([FileScanTask(file)])
    return {field.field_id: rows.column(field.name) for field in fields}
