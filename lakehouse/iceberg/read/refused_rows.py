"""The rows that stand in a quarantine: counted by rule and by file, shown, and told from one
another; read without a JVM.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.tables.masking import COUNTED_ROWS, redacted
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa

_FILE, _REASONS, _AT, _KEY = "_source_file", "_reasons", "_quarantined_at", "_row_key"
_NOT_SHOWN = frozenset({_KEY, "_source_sha256", _AT})


@dataclass(frozen=True)
class Refusals:
    """How many refused rows something has, and when the first and the last of them came to be
    as they are.
    """

    name: str | None
    """The rule that they break, or the delivered file that they came with; None of rows that
    know no file.
    """
    rows: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class RefusedRows:
    """What stands in the quarantine of a table; empty before the first run made it."""

    table: str
    quarantine: str
    rows: int = 0
    by_rule: tuple[Refusals, ...] = ()
    """The rule that most rows break first; a row may break several."""
    by_file: tuple[Refusals, ...] = ()

    @property
    def first_at(self) -> datetime | None:
        """When the first of them were refused."""
        return min((refusals.first_at for refusals in self.by_file), default=None)

    @property
    def last_at(self) -> datetime | None:
        """When the last of them were refused."""
        return max((refusals.last_at for refusals in self.by_file), default=None)


def count_refused(engine: Engine, table: IcebergTable) -> RefusedRows:
    """Count the rows in the quarantine of a table, one batch at a time.

    :param table: one that has a quarantine.
    """
    rules: dict[str | None, Refusals] = {}
    files: dict[str | None, Refusals] = {}
    rows = 0
    for batch in _batches(engine, table, (_REASONS, _FILE, _AT)):
        rows += batch.num_rows
        _add(rules, _per_rule(batch))
        _add(files, batch.select([_FILE, _AT]))
    quarantine = _quarantine(table).name
    return RefusedRows(table.name, quarantine, rows, _most_first(rules), _most_first(files))


def sample_refused(
    engine: Engine,
    table: IcebergTable,
    limit: int,
    *,
    rule: str | None = None,
    file: str | None = None,
) -> list[dict[str, Any]]:
    """Return some rows of the quarantine of a table with their reasons, personal values masked.

    Only declared columns are read: of others nobody knows whether they identify a person.

    :param limit: how many at most.
    :param rule: the rule that they break; any where it is left out.
    :param file: the delivered file that they came with.
    """
    quarantine = _quarantine(table)
    # No row is delivered with a stamp.
    hidden = {*_NOT_SHOWN, table.stamp}
    columns = tuple(name for name in quarantine.column_names if name not in hidden)
    looked_at = max(limit, COUNTED_ROWS) if quarantine.holds_personal_data else limit
    rows: list[dict[str, Any]] = []
    for batch in _batches(engine, table, columns, file):
        broken = batch if rule is None else _breaking(batch, rule)
        rows += broken.slice(0, looked_at - len(rows)).to_pylist()
        if len(rows) >= looked_at:
            break
    shown = redacted(engine.masking_key, quarantine, rows[:limit], rows, is_asked_for=True)
    return [{name: row[name] for name in columns if name in row} for row in shown]


def refused_keys(engine: Engine, table: IcebergTable) -> set[str]:
    """Return what identifies each row in the quarantine of a table."""
    keys: set[str] = set()
    for batch in _batches(engine, table, (_KEY,)):
        keys.update(map(str, batch.column(_KEY).to_pylist()))
    return keys


def _quarantine(table: IcebergTable) -> IcebergTable:
    assert table.quarantine is not None
    return table.quarantine


def _batches(
    engine: Engine, table: IcebergTable, columns: tuple[str, ...], file: str | None = None
) -> "Iterator[pa.RecordBatch]":
    """Yield columns of the quarantine, those that it has; nothing where no run made it yet."""
    from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo

    name = _quarantine(table).name
    if not engine.catalog.has(name):
        return
    loaded = engine.catalog.load(name)
    there = {field.name for field in loaded.schema().fields}
    selected = tuple(column for column in columns if column in there)
    of_file: BooleanExpression = AlwaysTrue()
    if file is not None:
        of_file = EqualTo(_FILE, file)  # type: ignore[call-arg,arg-type]
    yield from scanned_batches(loaded, loaded.scan(of_file, selected_fields=selected))


def _per_rule(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return a row for each reason of each row, and when that was refused."""
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


def _add(known: dict[str | None, Refusals], batch: "pa.RecordBatch") -> None:
    """Add the rows of a batch, each a name and a moment, to what is known by name."""
    import pyarrow as pa

    name, at = batch.schema.names
    grouped = pa.Table.from_batches([batch]).group_by(name)
    counted = grouped.aggregate([(at, "count"), (at, "min"), (at, "max")])
    for row in counted.to_pylist():
        its = Refusals(row[name], row[f"{at}_count"], row[f"{at}_min"], row[f"{at}_max"])
        before = known.get(its.name, its)
        known[its.name] = Refusals(
            its.name,
            its.rows + (before.rows if its.name in known else 0),
            min(before.first_at, its.first_at),
            max(before.last_at, its.last_at),
        )


def _most_first(known: dict[str | None, Refusals]) -> tuple[Refusals, ...]:
    return tuple(sorted(known.values(), key=lambda its: (-its.rows, its.name or "")))
