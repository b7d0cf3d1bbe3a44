"""Rows of a quarantine: counts, samples, keys, and partitions to recompute; no JVM."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.tables.casts import to_timestamp
from lakehouse.tables.masking import PERSON_SAMPLE_ROWS, redacted
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa


_FILE, _REASONS, _AT, _KEY = "_source_file", "_reasons", "_quarantined_at", "_row_key"
_NOT_SHOWN = frozenset({_KEY, "_source_sha256", _AT})


@dataclass(frozen=True)
class RowCounts:
    """Number of quarantined rows of a rule or file, with the first and last quarantine time."""

    name: str | None
    """The rule or the delivered file; None for rows without a file."""
    rows: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class QuarantinedRows:
    """The rows in a table's quarantine; empty before it is created."""

    table: str
    quarantine: str
    rows: int = 0
    by_rule: tuple[RowCounts, ...] = ()
    """Sorted by rows in descending order; a row can break several rules."""
    by_file: tuple[RowCounts, ...] = ()

    @property
    def first_at(self) -> datetime | None:
        """When the oldest of them were quarantined."""
        return min((counts.first_at for counts in self.by_file), default=None)

    @property
    def last_at(self) -> datetime | None:
        """When the newest of them were quarantined."""
        return max((counts.last_at for counts in self.by_file), default=None)


def count_quarantined(catalog: Catalog, table: IcebergTable) -> QuarantinedRows:
    """Count the rows in a table's quarantine, by three of their columns.

    :raises FilesUnsupported: if only Spark can read its rows.
    """
    import pyarrow as pa

    name = _quarantine(table).name
    batches = [*_batches(catalog, table, (_REASONS, _FILE, _AT))]
    if not batches:
        return QuarantinedRows(table.name, name)
    rows = pa.Table.from_batches(batches)
    reasons = pa.Table.from_batches([_per_rule(batch) for batch in batches])
    return QuarantinedRows(
        table.name, name, rows.num_rows, _counts(reasons, _REASONS), _counts(rows, _FILE)
    )


def sample_quarantined(
    engine: Engine,
    table: IcebergTable,
    limit: int,
    *,
    rule: str | None = None,
    file: str | None = None,
) -> list[dict[str, Any]]:
    """Return some quarantined rows with their reasons; declared columns, masked.

    :param rule: only rows that break this rule.
    :param file: only rows of this delivered file.
    """
    quarantine = _quarantine(table)
    # Delivered rows never have a stamp.
    hidden = {*_NOT_SHOWN, table.stamp}
    columns = tuple(name for name in quarantine.column_names if name not in hidden)
    scan_limit = max(limit, PERSON_SAMPLE_ROWS) if quarantine.has_personal_data else limit
    rows: list[dict[str, Any]] = []
    for batch in _batches(engine.catalog, table, columns, file):
        broken = batch if rule is None else _breaking(batch, rule)
        rows += broken.slice(0, scan_limit - len(rows)).to_pylist()
        if len(rows) >= scan_limit:
            break
    shown = redacted(engine.masking_key, quarantine, rows[:limit], rows, for_command=True)
    return [{name: row[name] for name in columns if name in row} for row in shown]


def quarantined_keys(engine: Engine, table: IcebergTable) -> set[str]:
    """Return the keys of the rows in a table's quarantine."""
    keys: set[str] = set()
    for batch in _batches(engine.catalog, table, (_KEY,)):
        keys.update(map(str, batch.column(_KEY).to_pylist()))
    return keys


def _quarantine(table: IcebergTable) -> IcebergTable:
    assert table.quarantine is not None
    return table.quarantine


def _batches(
    catalog: Catalog, table: IcebergTable, columns: tuple[str, ...], file: str | None = None
) -> "Iterator[pa.RecordBatch]":
    """Yield the existing columns of the quarantine; nothing if it does not exist yet."""
    from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo

    name = _quarantine(table).name
    if not catalog.has(name):
        return
    loaded = catalog.load(name)
    existing = {field.name for field in loaded.schema().fields}
    selected = tuple(column for column in columns if column in existing)
    of_file: BooleanExpression = AlwaysTrue()
    if file is not None:
        of_file = EqualTo(_FILE, file)  # type: ignore[call-arg,arg-type]
    yield from scanned_batches(loaded, loaded.scan(of_file, selected_fields=selected))


def _per_rule(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return one row per reason of each row, with its quarantine time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    reasons = batch.column(_REASONS)
    at = batch.column(_AT).take(pc.list_parent_indices(reasons))
    return pa.RecordBatch.from_arrays([pc.list_flatten(reasons), at], [_REASONS, _AT])


def _breaking(batch: "pa.RecordBatch", rule: str) -> "pa.RecordBatch":
    """Return the rows that break a rule."""
    import pyarrow as pa
    import pyarrow.compute as pc

    reasons = batch.column(_REASONS)
    flat = pc.list_flatten(reasons)
    is_rule = pc.is_in(flat, value_set=pa.array([rule], flat.type))
    return batch.take(pc.list_parent_indices(reasons).filter(is_rule))


def _counts(rows: "pa.Table", name: str) -> tuple[RowCounts, ...]:
    """Return the number of rows and the first and last time of each name, most rows first."""
    grouped = rows.group_by(name).aggregate([(_AT, "count"), (_AT, "min"), (_AT, "max")])
    counts = [
        RowCounts(row[name], row[f"{_AT}_count"], row[f"{_AT}_min"], row[f"{_AT}_max"])
        for row in grouped.to_pylist()
    ]
    return tuple(sorted(counts, key=lambda each: (-each.rows, each.name or "")))


_PARSED: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "timestamp": to_timestamp,
    "int": int,
    "bigint": int,
    "string": str,
}
Key = tuple[Any, ...]


def quarantined_values(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input]
) -> set[Any]:
    """Return the partition values of the rows in a table's quarantine; None if unknown.

    :param table: overwritten by partitions, with a quarantine.
    :raises FilesUnsupported: if only Spark can read the quarantine or a source.
    """
    quarantined = _by_source_key(engine, table)
    values: set[Any] = set()
    for source, column in followed(table, inputs).items():
        keys = {key for key in quarantined if None not in key}
        for key, value in _look_up(engine, source, column, keys):
            values.add(value)
            quarantined.pop(key, None)
    return values | {_parsed(table, text) for texts in quarantined.values() for text in texts}


def _by_source_key(engine: Engine, table: IcebergTable) -> dict[Key, set[str | None]]:
    """Return the quarantined rows by source key, with the texts of the partition column."""
    by = table.overwritten_by
    assert by is not None
    quarantined: dict[Key, set[str | None]] = {}
    columns = tuple(dict.fromkeys((*SOURCE_COLUMNS, by)))
    for batch in _batches(engine.catalog, table, columns):
        for row in batch.to_pylist():
            quarantined.setdefault(_key(row), set()).add(row[by])
    return quarantined


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
