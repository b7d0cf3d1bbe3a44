"""Finds the rows of data subjects in a snapshot, as positions in its data files; no JVM.

It reads only the columns that identify a person, of the files that can contain one of their
values according to the statistics.
"""

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FilesUnsupported
from lakehouse.iceberg.erasure.arrow_ids import (
    INTEGERS,
    Mask,
    Values,
    all_of,
    any_of,
    is_among,
    is_blank,
    is_id_among,
    text_of,
)
from lakehouse.iceberg.erasure.file_columns import ReadColumns, open_columns
from lakehouse.iceberg.erasure.person_columns import PersonColumn, PersonColumns
from lakehouse.iceberg.erasure.position_deletes import DeletedPositions
from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

_LOCAL_THREADS = os.cpu_count() or 1
_REMOTE_THREADS = 8
"""A bucket has latency. On a local disk, more threads than cores take a third longer."""
LeafTest = Callable[[Values], Mask]
"""Tests each value of an array of a primitive type."""


@dataclass(frozen=True)
class FileRows:
    """The rows of data subjects in one data file."""

    file: "DataFile"
    positions: "pa.Array[Any]"
    """Positions in the file, from 0, of the rows that readers see."""
    deleted: "pa.Array[Any]"
    """Sorted positions of all rows that delete files remove, of any person."""
    hidden_rows: int = 0
    """How many rows of the data subjects are already removed by delete files."""
    delete_files: "frozenset[DataFile]" = frozenset()
    """These delete files; they can apply to other data files too."""

    @property
    def rows(self) -> int:
        """How many rows of the data subjects readers see."""
        return len(self.positions)

    @property
    def gone(self) -> "pa.Array[Any]":
        """Positions of all rows that a rewrite of the file omits."""
        import pyarrow as pa

        return pa.concat_arrays([self.positions, self.deleted])


def find_rows(table: "Table", columns: PersonColumns, snapshot_id: int) -> list[FileRows]:
    """Return the files of a snapshot that contain rows of data subjects, including files in
    which delete files already remove all of them.

    :raises FilesUnsupported: if only Spark can read the snapshot.
    """
    if not columns.all:
        return []
    tasks = planned_files(table, snapshot_id, _row_filter(columns))
    deletes = DeletedPositions(table)
    threads = _LOCAL_THREADS if table.location().startswith("file:") else _REMOTE_THREADS
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(partial(_rows_of_file, table, columns, deletes), tasks)
        return [file for file in found if file.rows or file.hidden_rows]


def planned_files(
    table: "Table", snapshot_id: int, row_filter: "BooleanExpression | None" = None
) -> "list[FileScanTask]":
    """Return the data files of a snapshot, each with its delete files.

    :param row_filter: excludes files by their statistics.
    :raises FilesUnsupported: if only Spark can read the snapshot.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.manifest import FileFormat

    scan = table.scan(row_filter=row_filter or AlwaysTrue(), snapshot_id=snapshot_id)
    try:
        tasks = list(scan.plan_files())
    except ValueError:
        # PyIceberg does not plan a scan with equality deletes.
        if not why_only_spark_reads(table, snapshot_id):
            raise
        raise _unsupported(table, snapshot_id) from None
    if any(task.file.file_format == FileFormat.AVRO for task in tasks):
        raise _unsupported(table, snapshot_id)
    return tasks


def _unsupported(table: "Table", snapshot_id: int) -> FilesUnsupported:
    name = ".".join(table.name())
    why = why_only_spark_reads(table, snapshot_id)
    return FilesUnsupported(
        f"{name}: no rows can be erased from snapshot {snapshot_id}: {why}; expected data files"
        " in Parquet or ORC, without equality deletes.",
        next_step=f"Declare file_format='parquet' and run `lakehouse maintain {name}`; drop"
        " branches and tags with older files. Then run the erasure again.",
    )


def _row_filter(columns: PersonColumns) -> "BooleanExpression | None":
    """Return a filter for file statistics; None if they cannot exclude a file."""
    from pyiceberg.expressions import In, Or

    terms: list[BooleanExpression] = []
    for column in columns.all:
        values = _prunable(column)
        if values is None:
            return None
        # mypy takes pydantic's fields for the arguments, and not PyIceberg's own constructor.
        terms.append(In(column.field.name, values))  # type: ignore[call-arg,arg-type]
    return reduce(lambda left, right: Or(left, right), terms)


def _prunable(column: PersonColumn) -> list[Any] | None:
    """Return the values in the column's own type; None if its statistics do not apply."""
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

    with open_columns(table, task.file) as read:
        matches = _matches(read, task.file.record_count, columns)
    positions = pc.indices_nonzero(matches).cast(pa.int64())
    if not len(positions):
        return FileRows(task.file, positions, positions)
    deleted = deletes.of(task)
    seen = positions.filter(pc.invert(pc.is_in(positions, value_set=deleted)))
    hidden_rows = len(positions) - len(seen)
    return FileRows(task.file, seen, deleted, hidden_rows, frozenset(task.delete_files))


def _matches(read: ReadColumns, rows: int, columns: PersonColumns) -> Mask:
    """Return a mask of the rows that belong to the data subjects."""
    import pyarrow.compute as pc

    subject, by_id = _read_and_compare(read, columns.subject, rows)
    if not columns.personal:
        return any_of(by_id)
    has_no_id = all_of([_is_blank(values, rows) for values in subject]) if subject else None
    if has_no_id is not None and not pc.any(has_no_id).as_py():
        # Personal values identify only rows without an id.
        return any_of(by_id)
    _, by_value = _read_and_compare(read, columns.personal, rows)
    personal = any_of(by_value)
    return (
        personal if has_no_id is None else pc.or_(any_of(by_id), pc.and_(has_no_id, personal))
    )


def _read_and_compare(
    read: ReadColumns, columns: Sequence[PersonColumn], rows: int
) -> tuple[list[Values | None], list[Mask]]:
    """Return columns of a file, None for a missing one, and a mask of matching rows for each."""
    there = read([column.field for column in columns])
    values = [there.get(column.field.field_id) for column in columns]
    return values, [
        _is_value(column, found, rows) for column, found in zip(columns, values, strict=True)
    ]


def _is_value(column: PersonColumn, values: Values | None, rows: int) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    if values is None:
        return _none_of(rows)
    if column.has_parts:
        return any_leaf(values, partial(_is_text_among, column.values))
    if column.is_normalized:
        return is_id_among(_texts(values), column.normal_values)
    if column.type in INTEGERS:
        # In an old file the column can be narrower.
        numbers = values.cast(pa.int64())
        return pc.is_in(numbers, value_set=pa.array(column.integers, pa.int64()))
    return _is_text_among(column.values, values)


def _is_text_among(texts: Collection[str], values: Values) -> Mask:
    return is_among(_texts(values), texts)


def _texts(values: Values) -> Values:
    """Return the values as the text by which people are identified."""
    import pyarrow as pa
    from pyarrow import types

    kind = values.type
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_integer(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
    ):
        return values.cast(pa.string())
    return pa.array([text_of(value) for value in values.to_pylist()], pa.string())


def _is_blank(values: Values | None, rows: int) -> Mask:
    """Return a mask of the rows without a value in a column, which the file can lack."""
    import pyarrow.compute as pc

    if values is None:
        return pc.invert(_none_of(rows))
    return pc.invert(any_leaf(values, _has_text))


def _has_text(leaf: Values) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    # PyIceberg writes long strings.
    if not pa.types.is_string(leaf.type) and not pa.types.is_large_string(leaf.type):
        return leaf.is_valid()
    return pc.invert(is_blank(leaf))


def _none_of(rows: int) -> Mask:
    import numpy as np
    import pyarrow as pa

    return pa.chunked_array([pa.array(np.zeros(rows, dtype=bool))])


def any_leaf(values: Values, test: LeafTest) -> Mask:
    """Return a mask of the rows in which a leaf of a struct, array or map passes a test."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        masks = [any_leaf(chunk, test) for chunk in values.chunks]
        return pa.chunked_array(masks, pa.bool_())
    kind = values.type
    if pa.types.is_struct(kind):
        # Unlike `field`, `flatten` applies the struct's own NULLs and offset.
        fields = [any_leaf(field, test) for field in values.flatten()]
        return any_of(fields) if fields else test(pa.nulls(len(values)))
    if pa.types.is_map(kind):
        inner = any_of([any_leaf(values.keys, test), any_leaf(values.items, test)])
        return _of_parents(values, inner)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_parents(values, any_leaf(values.values, test))
    return test(values)


def _of_parents(parents: Values, of_parts: Mask) -> Mask:
    """Reduce a mask of elements to a mask of their arrays or maps."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    # Offsets refer to all elements, also if the parents are a slice.
    offsets = parents.offsets.to_numpy(zero_copy_only=False)
    passed = pc.fill_null(of_parts, False).to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(passed, dtype=np.int64)])
    has_passed = before[offsets[1:]] > before[offsets[:-1]]
    return pc.and_(pa.array(has_passed), parents.is_valid())
