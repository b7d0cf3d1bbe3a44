"""Rules that compare an aggregate of a table with one of another table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import ClassVar, NamedTuple, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.snapshots import MAIN, Snapshot, read_history
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedSnapshot
from lakehouse.iceberg.values.write_context import within_partitions
from lakehouse.iceberg.values.write_result import Pin, RuleResult
from lakehouse.tables.declaration import TableDeclaration, name_of
from lakehouse.tables.rule import BoundOptions, Bounds, DeclaringTable, Rule

_COUNTS = ("count(1)", "count(*)")


@dataclass(frozen=True, kw_only=True)
class ReconciliationRule(EvaluableRule):
    """The relative difference between an aggregate of the table and one of another table."""

    here: str
    table: str
    there: str
    by: str | None = None
    """The column of the other table with the partitions of a run."""
    reads_rows: ClassVar[bool] = False

    @property
    def sql(self) -> str:
        return f"difference of {self.here} from {self.there} of {self.table} {self.bounds}"

    @property
    def read_columns(self) -> Mapping[str, Sequence[str]]:
        return {self.table: [self.by] if self.by else []}

    def check(self, table: DeclaringTable) -> None:
        """Check that entire tables are not compared by runs of partitions."""
        if table.overwritten_by and not self.by:
            raise DeclarationError(
                f"{table.name}: rule {self.name} compares entire tables, and a run writes"
                f" partitions of {table.overwritten_by}.",
                next_step=f"Declare by=…, the column of {self.table} with the same partitions.",
            )

    def snapshot_result(self, evaluated: EvaluatedSnapshot) -> RuleResult:
        """Compare both aggregates, filtered to the run's partitions if it has any."""
        if evaluated.snapshot is None:
            return RuleResult(self, 0, 0)
        table, by = evaluated.table, evaluated.table.overwritten_by
        where = within_partitions(evaluated.partitions, by)
        other_where = within_partitions(evaluated.partitions if by else None, self.by)
        history = read_history(evaluated.engine, self.table)
        other_id = evaluated.pins.get(self.table, history.refs.get(MAIN))
        other = history.snapshots.get(other_id) if other_id is not None else None
        here, there = self._values(
            evaluated.engine,
            _Aggregate(self.here, table.name, evaluated.snapshot, where),
            _Aggregate(self.there, self.table, other, other_where),
        )
        at = f" at snapshot {other.snapshot_id}" if other else ", which is empty"
        note = f"{here} here, {there} in {self.table}{at}"
        return RuleResult(self, 0, evaluated.rows, value=_difference(here, there), note=note)

    def _values(self, engine: Engine, *aggregates: "_Aggregate") -> list[Decimal]:
        """Return the values of aggregates, by at most one query."""
        texts: dict[int, str | None] = {}
        queries = []
        for at, (sql, table, snapshot, where) in enumerate(aggregates):
            if sql.lower() in _COUNTS and where is None:
                # Metadata contains it.
                texts[at] = str(snapshot.rows if snapshot else 0)
                continue
            pin = Pin(table, snapshot.snapshot_id if snapshot else None)
            # Text represents any number.
            columns = (f"{at} AS at", f"CAST({sql} AS STRING) AS value")
            queries.append(read(engine, pin, where).selectExpr(*columns))
        if queries:
            texts |= {row["at"]: row["value"] for row in union_all(queries).collect()}
        return [self._number(texts[at]) for at in range(len(aggregates))]

    def _number(self, text: str | None) -> Decimal:
        """Return the value of an aggregate; the sum of no rows is 0."""
        try:
            return Decimal(text or 0)
        except InvalidOperation:
            raise DeclarationError(
                f"rule {self.name} compares {text!r}; expected a number, such as a sum or count."
            ) from None


class _Aggregate(NamedTuple):
    """A SQL aggregate of a table's snapshot, of all or some rows."""

    sql: str
    table: str
    snapshot: Snapshot | None
    where: str | None


def reconciles(
    table: str | TableDeclaration,
    *,
    here: str = "count(1)",
    there: str = "count(1)",
    by: str | None = None,
    at_most: float = 0.0,
    warn_above: float | None = None,
    **options: Unpack[BoundOptions],
) -> Rule:
    """An aggregate of this table equals one of another table, such as the number of its source
    rows.

    In a write both are restricted to the run's partitions, if it has any, and the other table
    is read as pinned. `count(1)` of entire tables is known from metadata; other aggregates take
    one query per rule.

    :param table: the other table, or its name.
    :param here: a SQL aggregate of this table.
    :param there: a SQL aggregate of the other table.
    :param by: the other table's column with the partitions of this one.
    :param at_most: the tolerance, as a share of the other table's value.
    :param warn_above: a smaller share, above which the check warns.
    """
    tolerance = f", give or take {at_most:.4g} of it" if at_most else ""
    other = name_of(table)
    return ReconciliationRule.declare(
        f"reconciles_{other.replace('.', '_')}",
        (),
        f"{here} is {there} of {other}{tolerance}",
        options,
        here=here,
        table=other,
        there=there,
        by=by,
        bounds=Bounds(high=at_most),
        warn_outside=None if warn_above is None else Bounds(high=warn_above),
    )


def _difference(here: Decimal, there: Decimal) -> float:
    if here == there:
        return 0.0
    comparable = here.is_finite() and there.is_finite() and there != 0
    return float(abs(here - there) / abs(there)) if comparable else math.inf
