"""Rows of a table that a column tells, without a JVM: of each file that column is read alone
first, since few files have any of them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.privacy.table_reading import data_files, explained

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

Matches = Callable[[Any], Any]
"""Returns of each value of a column of Arrow whether it may be one that is looked for."""
_FILES_AT_ONCE = 8
_FIELD_ID = b"PARQUET:field_id"
_TYPES = {"string": ("string", "large_string"), "long": ("int64",), "int": ("int32",)}
"""What stands in a file as in the table, by Iceberg's name of the type: Arrow's."""


class MatchingRows(NamedTuple):
    """The rows of a file that match."""

    path: str
    rows: "pa.Table"


def matching_rows(
    loaded: "Table",
    names: Sequence[str],
    column: str,
    matches: Matches,
    *,
    all_snapshots: bool,
    files: Collection[str] | None = None,
) -> Iterator[MatchingRows]:
    """Yield columns of the rows whose value in one of them matches, of the files that have any.

    :param column: one of the names.
    :param all_snapshots: whether each row counts that any snapshot has in a file, of whatever
        branch or tag; else those that readers see now.
    :param files: the paths of the only files that are read; None for all.
    :raises LakehouseError: when a file of the table cannot be read without Spark.
    """
    reader = _Reader(loaded, tuple(dict.fromkeys(names)), column, matches)
    yield from explained(loaded, lambda: reader.rows(files, all_snapshots=all_snapshots))


@dataclass(frozen=True)
class _Reader:
    loaded: "Table"
    names: tuple[str, ...]
    column: str
    matches: Matches

    def rows(
        self, files: Collection[str] | None, *, all_snapshots: bool
    ) -> Iterator[MatchingRows]:
        tasks = []
        for task in self._tasks(all_snapshots=all_snapshots):
            if files is None or task.file.file_path in files:
                tasks.append(task)
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            for task, rows in zip(tasks, pool.map(self._read, tasks), strict=True):
                if rows.num_rows:
                    yield MatchingRows(task.file.file_path, rows)

    def _tasks(self, *, all_snapshots: bool) -> "Iterator[FileScanTask]":
        from pyiceberg.table import FileScanTask

        if all_snapshots:
            yield from map(FileScanTask, data_files(self.loaded))
        elif self.loaded.current_snapshot() is not None:
            yield from self.loaded.scan(selected_fields=self.names).plan_files()

    def _read(self, task: "FileScanTask") -> "pa.Table":
        from pyiceberg.manifest import FileFormat

        if not task.delete_files and task.file.file_format == FileFormat.PARQUET:
            rows = self._read_directly(task.file)
            if rows is not None:
                return rows
        return self._read_by_pyiceberg(task)

    def _read_directly(self, file: "DataFile") -> "pa.Table | None":
        """Read a file that has all columns as the table has them; None of others."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        # PyIceberg's streams are files to PyArrow, and are declared as something of their own.
        stream: Any
        with (
            self.loaded.io.new_input(file.file_path).open() as stream,
            pq.ParquetFile(stream) as parquet,
        ):
            there = self._names_in(parquet)
            if there is None:
                return None
            # Side by side with other files: threads of its own would cost more than they save.
            values = parquet.read(columns=[there[self.column]], use_threads=False).column(0)
            found = self.matches(values)
            if not pc.any(found).as_py():
                return parquet.schema_arrow.empty_table()
            columns = list(there.values())
            rows = parquet.read(columns=columns, use_threads=False).filter(found)
            return rows.select(columns).rename_columns(list(there))

    def _names_in(self, parquet: "pq.ParquetFile") -> dict[str, str] | None:
        """Return what a file calls the columns, by what the table calls them."""
        import pyarrow as pa

        schema = self.loaded.schema()
        fields: dict[int, pa.Field[Any]] = {}
        for field in parquet.schema_arrow:
            fields[int((field.metadata or {}).get(_FIELD_ID, -1))] = field
        names = {}
        for name in self.names:
            expected = schema.find_field(name)
            field_there = fields.get(expected.field_id)
            kinds = _TYPES.get(str(expected.field_type), ())
            if field_there is None or str(field_there.type) not in kinds:
                return None
            names[name] = field_there.name
        return names

    def _read_by_pyiceberg(self, task: "FileScanTask") -> "pa.Table":
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        projection = self.loaded.scan(selected_fields=self.names).projection()
        scan = ArrowScan(self.loaded.metadata, self.loaded.io, projection, AlwaysTrue())
        rows = scan.to_table([task])
        return rows.filter(self.matches(rows.column(self.column)))
