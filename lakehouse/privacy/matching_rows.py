"""Rows of a table that some columns tell, without a JVM: of each file these are read alone first,
since few files have any of the rows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lakehouse.iceberg.erasure.arrow_ids import Mask, Values, any_of
from lakehouse.iceberg.erasure.file_columns import open_columns
from lakehouse.iceberg.erasure.find_rows import planned_files
from lakehouse.iceberg.erasure.position_deletes import DeletedPositions
from lakehouse.privacy.table_reading import data_files, explained

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.types import NestedField

Matches = Callable[[Values], Mask]
"""Returns of each value of a column of Arrow whether it may be one that is looked for."""
_FILES_AT_ONCE = 8


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
    schema = loaded.schema()
    fields = {name: schema.find_field(name) for name in (*columns, *beside)}
    reader = _Reader(loaded, fields, tuple(columns), matches, DeletedPositions(loaded))
    yield from explained(loaded, lambda: reader.rows(without, all_snapshots=all_snapshots))


@dataclass(frozen=True)
class _Reader:
    loaded: "Table"
    fields: "Mapping[str, NestedField]"
    columns: tuple[str, ...]
    matches: Matches
    deletes: DeletedPositions

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

        snapshot = self.loaded.current_snapshot()
        if all_snapshots:
            yield from map(FileScanTask, data_files(self.loaded))
        elif snapshot is not None:
            yield from planned_files(self.loaded, snapshot.snapshot_id)

    def _read(self, task: "FileScanTask") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        with open_columns(self.loaded, task.file) as read:
            values = read([self.fields[name] for name in self.columns])
            positions = pa.array([], pa.uint64())
            if values:
                matched = any_of([self.matches(column) for column in values.values()])
                positions = pc.indices_nonzero(matched)
            if len(positions):
                values |= read(
                    [self.fields[name] for name in self.fields.keys() - self.columns]
                )
        if task.delete_files and len(positions):
            deleted = pc.is_in(positions.cast(pa.int64()), value_set=self.deletes.of(task))
            positions = positions.filter(pc.invert(deleted))
        # A file from before a column was added does not contain it.
        missing = pa.nulls(task.file.record_count, pa.string())
        columns = {
            name: values.get(field.field_id, missing) for name, field in self.fields.items()
        }
        return pa.table(columns).take(positions)
