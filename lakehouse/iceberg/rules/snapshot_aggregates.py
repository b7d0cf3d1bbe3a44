"""Aggregates of tables or partitions, from metadata or from one query for all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.snapshots import Snapshot
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.values.write_result import Pin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTS = ("count(1)", "count(*)")


@dataclass(frozen=True)
class TableAggregate:
    """One SQL aggregate of a table's snapshot, of all or some rows, for a rule."""

    rule: str
    sql: str
    table: str
    snapshot: Snapshot | None
    where: str | None

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.snapshot.rows if self.snapshot else 0

    @property
    def is_in_metadata(self) -> bool:
        """Whether metadata contains its value."""
        return self.sql.lower() in _COUNTS and self.where is None

    def query(self, engine: Engine, at: int) -> "DataFrame":
        """Return an index and the value as text, which represents any number."""
        snapshot_id = self.snapshot.snapshot_id if self.snapshot else None
        rows = read(engine, Pin(self.table, snapshot_id), self.where)
        return rows.selectExpr(f"{at} AS at", f"CAST({self.sql} AS STRING) AS value")


def values_of(
    engine: Engine, aggregates: Sequence[TableAggregate]
) -> dict[str, list[tuple[TableAggregate, Decimal]]]:
    """Return the aggregates of each rule with their values, by at most one query.

    :raises DeclarationError: names a rule whose aggregate is not numeric.
    """
    queries = [
        aggregate.query(engine, at)
        for at, aggregate in enumerate(aggregates)
        if not aggregate.is_in_metadata
    ]
    texts = {row["at"]: row["value"] for row in union_all(queries).collect()} if queries else {}
    values: dict[str, list[tuple[TableAggregate, Decimal]]] = {}
    for at, aggregate in enumerate(aggregates):
        in_metadata = aggregate.is_in_metadata
        value = Decimal(aggregate.rows) if in_metadata else _number(aggregate, texts[at])
        values.setdefault(aggregate.rule, []).append((aggregate, value))
    return values


def _number(aggregate: TableAggregate, text: str | None) -> Decimal:
    """Return the value of an aggregate; the sum of no rows is 0."""
    try:
        return Decimal(text or 0)
    except InvalidOperation:
        raise DeclarationError(
            f"rule {aggregate.rule} compares {text!r}; expected a number, such as a sum or count."
        ) from None
