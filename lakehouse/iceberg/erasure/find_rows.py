"""Finds the rows of data subjects in data files, as positions; no JVM.

A row belongs to a person if an id column contains the person's id. If a row has no id, or the
table no id column, a personal value identifies it: next to another person's id, a value is that
person's.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.errors import FilesUnsupported, TableDamaged
from lakehouse.iceberg.erasure.arrow_ids import (
    Mask,
    Values,
    all_of,
    any_of,
    is_blank,
    match_ids,
    match_values,
)
from lakehouse.iceberg.erasure.position_deletes import DeletedPositions
from lakehouse.iceberg.metadata.referenced_files import all_manifests
from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads
from lakehouse.tables.person import Person, folded, names_of, normal_id
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.types import NestedField

_LOCAL_THREADS = os.cpu_count() or 1
_REMOTE_THREADS = 8
"""A bucket has latency. On a local disk, more threads than cores take a third longer."""
_FIELD_ID = b"PARQUET:field_id"
_File = TypeVar("_File")
_Result = TypeVar("_Result")
_ReadColumns = Callable[["Iterable[NestedField]"], dict[int, Values]]
"""Reads columns of a data file; returns those that the file has, by field id."""


@dataclass(frozen=True, repr=False)
class PersonColumn:
    """A column, and the values of data subjects in it."""

    field: "NestedField"
    match: Callable[[Values], Mask]


@dataclass(frozen=True)
class PersonColumns:
    """The columns that identify the rows of data subjects in one table."""

    ids: tuple[PersonColumn, ...] = ()
    personal: tuple[PersonColumn, ...] = ()


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
    def omitted(self) -> "pa.Array[Any]":
        """Positions of all rows that a rewrite of the file omits."""
        import pyarrow as pa

        return pa.concat_arrays([self.positions, self.deleted])


def id_column(field: "NestedField", ids: Iterable[str]) -> PersonColumn:
    """Return a column that contains ids."""
    searched = frozenset(map(normal_id, ids))
    return PersonColumn(field, partial(match_ids, ids=searched))


def value_column(field: "NestedField", values: Iterable[str]) -> PersonColumn:
    """Return a column that contains personal values."""
    keys = frozenset(map(folded, values))
    return PersonColumn(field, partial(match_values, keys=keys))


def person_columns(
    table: IcebergTable, loaded: "Table", persons: Sequence[Person]
) -> PersonColumns:
    """Return the columns that can contain some people, by each declared or former name."""
    ids: list[PersonColumn] = []
    personal: list[PersonColumn] = []
    for column in table.columns:
        names = names_of(column)
        all_ids: set[str] = set()
        all_values: set[str] = set()
        for person in persons:
            if person.subject.lower() in names:
                all_ids |= person.ids
            for name, values in person.personal.items():
                if name.lower() in names:
                    all_values |= values
        for field_of_table in _fields_called(loaded, names):
            by_value = value_column(field_of_table, all_values)
            if all_ids:
                by_id = id_column(field_of_table, all_ids)
                # Of people without a subject, both are known.
                ids.append(_either(by_id, by_value) if all_values else by_id)
            elif all_values:
                personal.append(by_value)
    return PersonColumns(tuple(ids), tuple(personal))


def _either(one: PersonColumn, other: PersonColumn) -> PersonColumn:
    return PersonColumn(
        one.field, lambda values: any_of([one.match(values), other.match(values)])
    )


def _fields_called(loaded: "Table", names: frozenset[str]) -> "list[NestedField]":
    """Return the fields of these names, dropped ones too: old files can contain them.

    A field that has another name now belongs to the column of that name.
    """
    current = {one.field_id: one for one in loaded.schema().fields}
    fields = {
        one.field_id: current.get(one.field_id, one)
        for schema in loaded.schemas().values()
        for one in schema.fields
        if current.get(one.field_id, one).name.lower() in names
    }
    return [fields[field_id] for field_id in sorted(fields)]


def find_rows(
    table: "Table", columns: PersonColumns, snapshot_id: int | None = None
) -> list[FileRows]:
    """Return the data files with rows of data subjects, also if delete files hide all of them.

    :param snapshot_id: None for the files of all snapshots; delete files are then ignored.
    :raises FilesUnsupported: if only Spark can read a file.
    :raises TableDamaged: if a file is missing.
    """
    if not columns.ids and not columns.personal:
        return []
    if snapshot_id is None:
        tasks = _tasks_of_all_snapshots(table)
    else:
        tasks = planned_files(table, snapshot_id)
    deletes = DeletedPositions(table)
    found = _map_files(table, partial(_rows_of_file, table, columns, deletes), tasks)
    return [file for file in found if file.rows or file.hidden_rows]


def read_rows(
    table: "Table", files: Sequence[FileRows], fields: "Mapping[str, NestedField]"
) -> "Iterator[pa.Table]":
    """Yield the found rows of each file that readers see.

    :param fields: the columns to read, by their name in the result; NULL if a file lacks one.
    """

    def read_file(found: FileRows) -> "pa.Table":
        import pyarrow as pa

        with _open_columns(table, found.file) as read:
            values = read(fields.values())
        missing = pa.nulls(found.file.record_count, pa.string())
        columns = {name: values.get(one.field_id, missing) for name, one in fields.items()}
        return pa.table(columns).take(found.positions)

    yield from _map_files(table, read_file, [file for file in files if file.rows])


def planned_files(table: "Table", snapshot_id: int) -> "list[FileScanTask]":
    """Return the data files of a snapshot, each with its delete files.

    :raises FilesUnsupported: if only Spark can read the snapshot.
    """
    from pyiceberg.manifest import FileFormat

    try:
        tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    except ValueError:
        # PyIceberg does not plan a scan with equality deletes.
        if not why_only_spark_reads(table, snapshot_id):
            raise
        raise _unsupported(table, why_only_spark_reads(table, snapshot_id)) from None
    if any(task.file.file_format == FileFormat.AVRO for task in tasks):
        raise _unsupported(table, "its data files are Avro")
    return tasks


def _tasks_of_all_snapshots(table: "Table") -> "list[FileScanTask]":
    from pyiceberg.manifest import FileFormat, ManifestContent
    from pyiceberg.table import FileScanTask

    files: dict[str, DataFile] = {}
    for manifest in all_manifests(table):
        if manifest.content is ManifestContent.DATA:
            for entry in manifest.fetch_manifest_entry(table.io):
                files[entry.data_file.file_path] = entry.data_file
    if any(file.file_format == FileFormat.AVRO for file in files.values()):
        raise _unsupported(table, "its data files are Avro")
    return list(map(FileScanTask, files.values()))


def _unsupported(table: "Table", why: str) -> FilesUnsupported:
    name = ".".join(table.name())
    return FilesUnsupported(
        f"{name}: rows of people cannot be found: {why}; expected data files in Parquet or ORC,"
        " without equality deletes.",
        next_step=f"Declare file_format='parquet' and run `lakehouse maintain {name}`; drop"
        " branches and tags with older files. Then run this again.",
    )


def _map_files(
    table: "Table", read: Callable[[_File], _Result], files: Sequence[_File]
) -> Iterator[_Result]:
    is_local = table.location().startswith("file:")
    try:
        with ThreadPoolExecutor(_LOCAL_THREADS if is_local else _REMOTE_THREADS) as pool:
            yield from pool.map(read, files)
    except FileNotFoundError as error:
        raise TableDamaged(
            f"{'.'.join(table.name())} is damaged: a data file of it is missing.",
            next_step="`lakehouse doctor` lists all missing files.",
        ) from error


def _rows_of_file(
    table: "Table", columns: PersonColumns, deletes: DeletedPositions, task: "FileScanTask"
) -> FileRows:
    import pyarrow as pa
    import pyarrow.compute as pc

    with _open_columns(table, task.file) as read:
        matches = _matches(read, task.file.record_count, columns)
    positions = pc.indices_nonzero(matches).cast(pa.int64())
    if not len(positions):
        return FileRows(task.file, positions, positions)
    deleted = deletes.of(task)
    seen = positions.filter(pc.invert(pc.is_in(positions, value_set=deleted)))
    hidden_rows = len(positions) - len(seen)
    return FileRows(task.file, seen, deleted, hidden_rows, frozenset(task.delete_files))


def _matches(read: _ReadColumns, row_count: int, columns: PersonColumns) -> Mask:
    """Return which rows of a file belong to the data subjects."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = read([column.field for column in columns.ids])
    nothing = pa.repeat(pa.scalar(False), row_count)
    by_id = any_of([nothing, *_tested(columns.ids, ids)])
    has_no_id = all_of([pc.invert(nothing), *map(is_blank, ids.values())])
    if not columns.personal or not pc.any(has_no_id).as_py():
        return by_id
    personal = read([column.field for column in columns.personal])
    by_value = any_of([nothing, *_tested(columns.personal, personal)])
    return pc.or_(by_id, pc.and_(has_no_id, by_value))


def _tested(columns: Sequence[PersonColumn], values: Mapping[int, Values]) -> Iterator[Mask]:
    for column in columns:
        if column.field.field_id in values:
            yield column.match(values[column.field.field_id])


@contextmanager
def _open_columns(table: "Table", file: "DataFile") -> Iterator[_ReadColumns]:
    import pyarrow.parquet as pq
    from pyiceberg.manifest import FileFormat

    if file.file_format != FileFormat.PARQUET:
        yield partial(_read_by_pyiceberg, table, file)
        return
    # PyIceberg's streams are files to PyArrow, and are declared as something of their own.
    stream: Any
    with table.io.new_input(file.file_path).open() as stream, pq.ParquetFile(stream) as opened:
        yield partial(_read_parquet, opened)


def _read_parquet(file: "pq.ParquetFile", fields: "Iterable[NestedField]") -> dict[int, Values]:
    """Match columns by field id; by name in a file that has no ids."""
    searched = {one.field_id: one.name for one in fields}
    names = {}
    for in_file in file.schema_arrow:
        file_id = (in_file.metadata or {}).get(_FIELD_ID)
        for field_id, name in searched.items():
            if in_file.name == name if file_id is None else int(file_id) == field_id:
                names[field_id] = in_file.name
    if not names:
        return {}
    # Other files are read in parallel: more threads would cost more than they save.
    rows = file.read(columns=list(names.values()), use_threads=False)
    return {field_id: rows.column(name) for field_id, name in names.items()}


def _read_by_pyiceberg(
    table: "Table", file: "DataFile", fields: "Iterable[NestedField]"
) -> dict[int, Values]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask

    optional = [one.model_copy(update={"required": False}) for one in fields]
    scan = ArrowScan(table.metadata, table.io, Schema(*optional), AlwaysTrue())
    rows = scan.to_table([FileScanTask(file)])
    return {one.field_id: rows.column(one.name) for one in optional}
