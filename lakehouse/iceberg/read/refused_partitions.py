"""Partitions that must be computed to evaluate a table's quarantined rows again; no JVM.

Their partition column can differ from the source's, so each row is looked up there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.tables.casts import to_timestamp
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa


_PARSED: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "timestamp": to_timestamp,
    "int": int,
    "bigint": int,
    "string": str,
}
Key = tuple[Any, ...]


def refused_values(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input]
) -> set[Any]:
    """Return the partition values of the rows in a table's quarantine; None if unknown.

    :param table: overwritten by partitions, with a quarantine.
    :raises FilesUnsupported: if only Spark can read the quarantine or a source.
    """
    refused = _refused(engine, table)
    values: set[Any] = set()
    for source, column in followed(table, inputs).items():
        keys = {key for key in refused if None not in key}
        for key, value in _look_up(engine, source, column, keys):
            values.add(value)
            refused.pop(key, None)
    return values | {_parsed(table, text) for texts in refused.values() for text in texts}


def _refused(engine: Engine, table: IcebergTable) -> dict[Key, set[str | None]]:
    """Return the quarantined rows by source key, with the texts of the partition column."""
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
    engine: Engine, source: str, column: str, keys: Collection[Key]
) -> Iterator[tuple[Key, Any]]:
    """Yield the source's value for each row, if the source has the source columns."""
    from pyiceberg.expressions import In

    loaded = engine.catalog.load(source)
    if not keys or not {*SOURCE_COLUMNS} <= {*loaded.schema().column_names}:
        return
    files = {key[0] for key in keys}
    of_files = In("_source_file", files)  # type: ignore[call-arg,arg-type]
    columns = dict.fromkeys((*SOURCE_COLUMNS, column))
    scan = loaded.scan(of_files, selected_fields=tuple(columns))
    for batch in scanned_batches(loaded, scan):
        for row in _having(batch, keys).to_pylist():
            if _key(row) in keys:
                yield _key(row), row[column]


def _having(batch: "pa.RecordBatch", keys: Collection[Key]) -> "pa.RecordBatch":
    """Return the rows of a batch with any of the row numbers, in any file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = batch.column("_source_row")
    numbers = pa.array({key[2] for key in keys}, rows.type)
    return batch.filter(pc.is_in(rows, value_set=numbers))


def _key(row: Mapping[str, Any]) -> Key:
    return tuple(row[name] for name in SOURCE_COLUMNS)


def _parsed(table: IcebergTable, text: str | None) -> Any:
    """Parse a delivered text as the type of the partition column; None if it is invalid."""
    assert table.overwritten_by is not None
    if text is None:
        return None
    parse = _PARSED[table.column(table.overwritten_by).type]
    try:
        return parse(text.strip())
    except ValueError:
        return None
