"""Where the rows of people stand in a snapshot: file by file, with their positions; no JVM.

Only the columns that tell are read, of the files that may have such a row by their statistics.
"""

import os
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.arrow_ids import (
    INTEGERS,
    Mask,
    Values,
    all_of,
    any_of,
    is_among,
    is_blank,
    is_id_among,
)
from lakehouse.iceberg.erasure.nested_values import any_leaf, leaf_types
from lakehouse.iceberg.erasure.person_columns import PersonColumn, PersonColumns
from lakehouse.iceberg.erasure.position_deletes import (
    DeletedPositions,
    has_equality_deletes,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

_FIELD_ID = b"PARQUET:field_id"
_LOCAL_THREADS = os.cpu_count() or 1
_REMOTE_THREADS = 8
"""Of a bucket files are waited for; of a disk, more threads than cores take turns, and a third
longer.
"""
_TEXT_TYPES = ("string", "date", "boolean", *INTEGERS)
"""The types whose values are the same text to Arrow as to Spark; decimals are too."""


class NeedsSpark(Exception):
    """A table that only Spark reads, or changes, as it should be; the text says why."""


@dataclass(frozen=True)
class FileRows:
    """The rows of some people in one data file."""

    file: "DataFile"
    positions: "pa.Array[Any]"
    """Where they are in the file, from 0; those that were deleted already are left out."""
    deleted: "pa.Array[Any]"
    """Positions of any rows that were deleted already, sorted."""
    hidden_rows: int = 0
    """How many more rows of theirs it has, which no reader sees: they were deleted already."""
    delete_files: "frozenset[DataFile]" = frozenset()
    """The files that say so, which may be of other data files too."""

    @property
    def rows(self) -> int:
        """How many rows of theirs readers see."""
        return len(self.positions)

    @property
    def gone(self) -> "pa.Array[Any]":
        """Positions of all rows that are not to be in the file any more."""
        import pyarrow as pa

        return pa.concat_arrays([self.positions, self.deleted])


def find_rows(table: "Table", columns: PersonColumns, snapshot_id: int) -> list[FileRows]:
    """Return the files of a snapshot that have rows of some people, with these; also where all of
    them were deleted already, by delete files.

    :raises NeedsSpark: where a file is no Parquet, a column's text is Spark's own, or rows are
        deleted by equality.
    """
    if not columns.all:
        return []
    _check_types(columns)
    tasks = planned_files(table, snapshot_id, _row_filter(columns))
    deletes = DeletedPositions(table)
    threads = _LOCAL_THREADS if table.location().startswith("file:") else _REMOTE_THREADS
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(partial(_rows_of_file, table, columns, deletes), tasks)
        return [file for file in found if file.rows or file.hidden_rows]


def planned_files(
    table: "Table", snapshot_id: int, row_filter: "BooleanExpression | None" = None
) -> "list[FileScanTask]":
    """Return the data files of a snapshot, each with the delete files that may count for it.

    :param row_filter: leaves out the files that have none of its rows by their statistics.
    :raises NeedsSpark: where there are other files than Parquet, or deletes by equality.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.manifest import FileFormat

    if has_equality_deletes(table, snapshot_id):
        raise NeedsSpark("rows of it are deleted by equality")
    scan = table.scan(row_filter=row_filter or AlwaysTrue(), snapshot_id=snapshot_id)
    tasks = list(scan.plan_files())
    others = {task.file.file_format for task in tasks} - {FileFormat.PARQUET}
    if others:
        raise NeedsSpark(f"its files are {', '.join(sorted(others))}")
    return tasks


def _check_types(columns: PersonColumns) -> None:
    for column in columns.all:
        for leaf_type in map(str, leaf_types(column.column_type)):
            if leaf_type not in _TEXT_TYPES and not leaf_type.startswith("decimal"):
                raise NeedsSpark(f"{column.name} is {column.type}")


def _row_filter(columns: PersonColumns) -> "BooleanExpression | None":
    """Return what leaves files out by their statistics; None where they cannot tell."""
    from pyiceberg.expressions import In, Or

    terms: list[BooleanExpression] = []
    for column in columns.all:
        values = _prunable(column)
        if values is None:
            return None
        # mypy takes pydantic's fields for the arguments, and not PyIceberg's own constructor.
        terms.append(In(column.name, values))  # type: ignore[call-arg,arg-type]
    return reduce(lambda left, right: Or(left, right), terms)


def _prunable(column: PersonColumn) -> list[Any] | None:
    """Return the values as the statistics of a column have them; None where that cannot be
    said.
    """
    if not column.is_current or column.is_normalized:
        return None
    if column.type in INTEGERS:
        return list(column.integers)
    return sorted(column.values) if column.type == "string" else None


def _rows_of_file(
    table: "Table", columns: PersonColumns, deletes: DeletedPositions, task: "FileScanTask"
) -> FileRows:
    import pyarrow as pa
    import pyarrow.compute as pc

    # PyIceberg's streams are files to PyArrow, and are declared as something of their own.
    stream: Any
    with table.io.new_input(task.file.file_path).open() as stream:
        positions = pc.indices_nonzero(_matches(stream, columns)).cast(pa.int64())
    if not len(positions):
        return FileRows(task.file, positions, positions)
    deleted = deletes.of(task)
    seen = positions.filter(pc.invert(pc.is_in(positions, value_set=deleted)))
    hidden_rows = len(positions) - len(seen)
    return FileRows(task.file, seen, deleted, hidden_rows, frozenset(task.delete_files))


def _matches(stream: Any, columns: PersonColumns) -> Mask:
    """Return of each row of a file whether it is some people's."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(stream) as file:
        rows = file.metadata.num_rows
        subject, theirs = _read_and_compare(file, columns.subject, rows)
        if not columns.personal:
            return any_of(theirs)
        nobody = all_of([_is_blank(values, rows) for values in subject]) if subject else None
        if nobody is not None and not pc.any(nobody).as_py():
            # The other columns tell of rows that name no one.
            return any_of(theirs)
        _, by_value = _read_and_compare(file, columns.personal, rows)
    personal = any_of(by_value)
    return personal if nobody is None else pc.or_(any_of(theirs), pc.and_(nobody, personal))


def _read_and_compare(
    file: "pq.ParquetFile", columns: Sequence[PersonColumn], rows: int
) -> tuple[list[Values | None], list[Mask]]:
    """Return some columns of a file, None of one that it lacks; and of each row whether it is some
    people's by that column.
    """
    read = _read_columns(file, columns)
    values = [read.get(column.field_id) for column in columns]
    return values, [
        _is_value(column, found, rows) for column, found in zip(columns, values, strict=True)
    ]


def _read_columns(file: "pq.ParquetFile", columns: Sequence[PersonColumn]) -> dict[int, Values]:
    """Return the columns that a file has, by field id; a file of no writer of Iceberg has no
    ids, and is read by name.
    """
    names = {}
    for field in file.schema_arrow:
        field_id = (field.metadata or {}).get(_FIELD_ID)
        for column in columns:
            is_it = (
                field.name == column.name
                if field_id is None
                else int(field_id) == column.field_id
            )
            if is_it:
                names[column.field_id] = field.name
    if not names:
        return {}
    # Side by side with other files: threads of its own would cost more than they save.
    read = file.read(columns=list(names.values()), use_threads=False)
    return {field_id: read.column(name) for field_id, name in names.items()}


def _is_value(column: PersonColumn, values: Values | None, rows: int) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    if values is None:
        return _none_of(rows)
    if column.has_parts:
        return any_leaf(values, partial(_is_leaf_among, column.values))
    if column.type in INTEGERS:
        # The file may be of a time when the column was narrower.
        numbers = values.cast(pa.int64())
        return pc.is_in(numbers, value_set=pa.array(column.integers, pa.int64()))
    text = values.cast(pa.string())
    if not column.is_normalized:
        return is_among(text, column.values)
    return is_id_among(text, column.normal_values)


def _is_leaf_among(wanted: Collection[str], leaf: Values) -> Mask:
    """Return of each value whether its text is one of some; false of a type whose text is another
    to Spark, which a file may have of a field that was dropped.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = leaf.type
    if not (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_integer(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
    ):
        return pa.array([False] * len(leaf), pa.bool_())
    return is_among(leaf.cast(pa.string()), wanted)


def _is_blank(values: Values | None, rows: int) -> Mask:
    """Return of each row whether nothing stands in a column, which the file may lack."""
    import pyarrow.compute as pc

    if values is None:
        return pc.invert(_none_of(rows))
    return pc.invert(any_leaf(values, _tells))


def _tells(leaf: Values) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    # A file of PyIceberg may have long texts.
    if not pa.types.is_string(leaf.type) and not pa.types.is_large_string(leaf.type):
        return leaf.is_valid()
    return pc.invert(is_blank(leaf))


def _none_of(rows: int) -> Mask:
    import numpy as np
    import pyarrow as pa

    return pa.chunked_array([pa.array(np.zeros(rows, dtype=bool))])
