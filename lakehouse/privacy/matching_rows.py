"""Rows of a table that some columns tell, without a JVM: of each file these are read alone first,
since few files have any of the rows.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.iceberg.erasure.arrow_ids import Mask, Values, any_of
from lakehouse.privacy.table_reading import data_files, explained

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

Matches = Callable[[Values], Mask]
"""Returns of each value of a column of Arrow whether it may be one that is looked for."""
_FILES_AT_ONCE = 8
_FIELD_ID = b"PARQUET:field_id"
_TYPES = {"string": ("string", "large_string"), "long": ("int64",), "int": ("int32",)}
"""What stands in a file as in the table, by Iceberg's name of the type: Arrow's."""


class MatchingRows(NamedTuple):
    """The rows of a file that match, which may be none."""

    path: str
    rows: "pa.Table"


def matching_rows(
    loaded: "Table",
    columns: Collection[str],
    matches: Matches,
    *,
    beside: Collection[str] = (),
    all_snapshots: bool,
    without: Collection[str] = (),
) -> Iterator[MatchingRows]:
    """Yield of each file the rows whose value in any of some columns, at least one, matches.

    :param beside: names of other columns that are read of these rows.
    :param all_snapshots: whether each row counts that any snapshot has in a file, of whatever
        branch or tag; else those that readers see now.
    :param without: the paths of files that are known to have none, and are not read.
    :raises LakehouseError: when a file of the table cannot be read without Spark.
    """
    names = tuple(dict.fromkeys((*columns, *beside)))
    reader = _Reader(loaded, names, tuple(columns), matches)
    yield from explained(loaded, lambda: reader.rows(without, all_snapshots=all_snapshots))


@dataclass(frozen=True)
class _Reader:
    loaded: "Table"
    names: tuple[str, ...]
    columns: tuple[str, ...]
    matches: Matches

    def rows(self, without: Collection[str], *, all_snapshots: bool) -> Iterator[MatchingRows]:
        tasks = []
        for task in self._tasks(all_snapshots=all_snapshots):
            if task.file.file_path not in without:
                tasks.append(task)
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            for task, rows in zip(tasks, pool.map(self._read, tasks), strict=True):
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
            told = [there[name] for name in self.columns]
            found = self._matching(parquet.read(columns=told, use_threads=False), told)
            read = list(there.values())
            if pc.any(found).as_py():
                rows = parquet.read(columns=read, use_threads=False).filter(found)
            else:
                rows = parquet.schema_arrow.empty_table()
            return rows.select(read).rename_columns(list(there))

    def _matching(self, rows: "pa.Table", columns: Sequence[str]) -> Mask:
        return any_of([self.matches(rows.column(name)) for name in columns])

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
        return rows.filter(self._matching(rows, self.columns))
