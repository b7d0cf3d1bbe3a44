"""Rows of a quarantine: counts, samples and keys; no JVM."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.tables.masking import PERSON_SAMPLE_ROWS, redacted
from lakehouse.tables.table import IcebergTable

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
