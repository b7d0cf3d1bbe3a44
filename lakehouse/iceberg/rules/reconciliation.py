"""Rules that a figure of a table is the same in another one: counts by metadata where they can
be, the rest queried.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, Snapshot, read_history
from lakehouse.iceberg.metadata.write_context import Partitions, within_partitions
from lakehouse.iceberg.metadata.write_result import Pin, RuleResult
from lakehouse.iceberg.read.inputs import read
from lakehouse.tables.measures import Difference
from lakehouse.tables.quoting import literal
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTS = ("count(1)", "count(*)")


@dataclass(frozen=True)
class _Figure:
    """One aggregate of a state of a table, in all or some of its rows."""

    key: str
    sql: str
    table: str
    snapshot: Snapshot | None
    where: str | None

    @property
    def known(self) -> Decimal | None:
        """Its value where metadata tells it."""
        counts = self.sql.lower() in _COUNTS and self.where is None
        return Decimal(self.snapshot.rows if self.snapshot else 0) if counts else None

    def query(self, engine: Engine) -> "DataFrame":
        """Return one row with its key and its value as text, which holds a decimal and a double
        alike.
        """
        rows = read(
            engine,
            Pin(self.table, self.snapshot.snapshot_id if self.snapshot else None),
            self.where,
        )
        return rows.selectExpr(
            f"{literal(self.key)} AS key", f"CAST({self.sql} AS STRING) AS value"
        )


def reconcile(
    engine: Engine,
    table: IcebergTable,
    snapshot: Snapshot | None,
    pins: Mapping[str, int | None],
    partitions: Partitions | None = None,
) -> list[RuleResult]:
    """Evaluate the rules that look at a figure of two tables; one query for all, and none where
    metadata tells.

    :param snapshot: the state of the table that is looked at.
    :param pins: states of other tables, by name; of those that are not named, what readers see.
    :param partitions: those of the run, which then are all that is compared.
    """
    by = table.overwritten_by
    where = within_partitions(partitions, by)
    rules = [rule for rule in table.rules if isinstance(rule.measure, Difference)]
    sides = []
    for rule in rules:
        assert isinstance(rule.measure, Difference)
        here = _Figure(f"{rule.name} here", rule.measure.here, table.name, snapshot, where)
        sides.append(
            (here, _there(engine, rule.name, rule.measure, pins, partitions if by else None))
        )
    values = _values(engine, [side for pair in sides for side in pair])
    return [_compared(rule, pair, values) for rule, pair in zip(rules, sides, strict=True)]


def _there(
    engine: Engine,
    name: str,
    measure: Difference,
    pins: Mapping[str, int | None],
    partitions: Partitions | None,
) -> _Figure:
    """Return the figure of the other table, in the state that it is pinned to."""
    history = read_history(engine, measure.table)
    pinned = pins[measure.table] if measure.table in pins else history.refs.get(MAIN)
    state = history.snapshots.get(pinned) if pinned is not None else None
    where = within_partitions(partitions, measure.by)
    return _Figure(f"{name} there", measure.there, measure.table, state, where)


def compared_tables(table: IcebergTable) -> list[str]:
    """Return the tables that the rules of a table compare it with."""
    return [rule.measure.table for rule in table.rules if isinstance(rule.measure, Difference)]


def _values(engine: Engine, figures: Sequence[_Figure]) -> dict[str, Decimal]:
    values = {figure.key: figure.known for figure in figures}
    asked = [figure.query(engine) for figure in figures if figure.known is None]
    if asked:
        union = asked[0]
        for one in asked[1:]:
            union = union.unionAll(one)
        values |= {row["key"]: _number(row["key"], row["value"]) for row in union.collect()}
    return {key: value for key, value in values.items() if value is not None}


def _number(key: str, text: str | None) -> Decimal:
    """Return a figure's value; a sum of nothing is 0."""
    try:
        return Decimal(text or 0)
    except InvalidOperation:
        raise DeclarationError(
            f"rule {key.split()[0]} compares what is no number; expected sums or counts."
        ) from None


def _compared(
    rule: Rule, sides: tuple[_Figure, _Figure], values: Mapping[str, Decimal]
) -> RuleResult:
    here, there = (values[side.key] for side in sides)
    other = sides[1]
    state = (
        f" at snapshot {other.snapshot.snapshot_id}" if other.snapshot else ", which is empty"
    )
    note = f"{here} here, {there} in {other.table}{state}"
    rows = sides[0].snapshot.rows if sides[0].snapshot else 0
    return RuleResult(rule, 0, rows, value=_difference(here, there), note=note)


def _difference(here: Decimal, there: Decimal) -> float:
    if here == there:
        return 0.0
    both = here.is_finite() and there.is_finite() and there != 0
    return float(abs(here - there) / abs(there)) if both else math.inf
