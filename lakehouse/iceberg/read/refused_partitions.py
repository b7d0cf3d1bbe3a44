"""Which partitions of a table have to be computed for its refused rows to be judged again; no
JVM.

A run reads the rows of its partitions by a column of the source, which need not be the one that
the table has: so each refused row is looked up in the source that it came from, by its file and
its number there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.tables.casts import moment_of
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa


_PARSED: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "timestamp": moment_of,
    "int": int,
    "bigint": int,
    "string": str,
}
Key = tuple[Any, ...]


def refused_values(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input]
) -> set[Any]:
    """Return the values of the partition column of the rows in the quarantine of a table.

    None stands for rows of which nothing tells it: they go along with any run, or lie in a
    partition that nobody can know.

    :param table: one that is overwritten by partitions, and has a quarantine.
    :raises FilesUnsupported: where only Spark reads the rows of the quarantine, or of a source.
    """
    refused = _refused(engine, table)
    values: set[Any] = set()
    for source, column in followed(table, inputs).items():
        sought = {key for key in refused if None not in key}
        for key, value in _look_up(engine, source, column, sought):
            values.add(value)
            refused.pop(key, None)
    return values | {_parsed(table, text) for texts in refused.values() for text in texts}


def _refused(engine: Engine, table: IcebergTable) -> dict[Key, set[str | None]]:
    """Return the refused rows by their source, each with what was delivered for the partition
    column.
    """
    assert table.quarantine is not None
    assert table.overwritten_by is not None
    by = table.overwritten_by
    refused: dict[Key, set[str | None]] = {}
    if not engine.catalog.has(table.quarantine.name):
        return refused
    loaded = engine.catalog.load(table.quarantine.name)
    columns = dict.fromkeys((*SOURCE_COLUMNS, by))
    for batch in scanned_batches(loaded, loaded.scan(selected_fields=tuple(columns))):
        for row in batch.to_pylist():
            refused.setdefault(_key(row), set()).add(row[by])
    return refused


def _look_up(
    engine: Engine, source: str, column: str, sought: Collection[Key]
) -> Iterator[tuple[Key, Any]]:
    """Yield the value that each row has in its source, where that keeps the rows' own."""
    from pyiceberg.expressions import In

    loaded = engine.catalog.load(source)
    if not sought or not {*SOURCE_COLUMNS} <= {*loaded.schema().column_names}:
        return
    files = {key[0] for key in sought}
    of_files = In("_source_file", files)  # type: ignore[call-arg,arg-type]
    columns = dict.fromkeys((*SOURCE_COLUMNS, column))
    scan = loaded.scan(of_files, selected_fields=tuple(columns))
    for batch in scanned_batches(loaded, scan):
        for row in _having(batch, sought).to_pylist():
            if _key(row) in sought:
                yield _key(row), row[column]


def _having(batch: "pa.RecordBatch", sought: Collection[Key]) -> "pa.RecordBatch":
    """Return the rows of a batch that have one of the sought numbers, in whatever file: most
    have none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = batch.column("_source_row")
    numbers = pa.array({key[2] for key in sought}, rows.type)
    return batch.filter(pc.is_in(rows, value_set=numbers))


def _key(row: Mapping[str, Any]) -> Key:
    return tuple(row[name] for name in SOURCE_COLUMNS)


def _parsed(table: IcebergTable, text: str | None) -> Any:
    """Return what a delivered text is in the type of the partition column; None where it cannot
    be read.
    """
    assert table.overwritten_by is not None
    if text is None:
        return None
    parse = _PARSED[table.column(table.overwritten_by).type]
    try:
        return parse(text.strip())
    except ValueError:
        return None
