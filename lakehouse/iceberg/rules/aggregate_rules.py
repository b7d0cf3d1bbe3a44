"""Rules on aggregates of a column; they reject no single rows.

They apply to the rows of a write: appended or merged rows, the run's partitions, or all rows of
an overwrite. A check that runs without a write evaluates all rows, or those of the requested
partitions. Therefore a mean can be bounded in every write mode, but a total only if these are
always the same rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule
from lakehouse.iceberg.rules.rows import RowRule
from lakehouse.tables import types
from lakehouse.tables.quoting import identifier
from lakehouse.tables.rule import (
    BoundOptions,
    Bounds,
    CountOptions,
    DeclaringTable,
    Number,
    Rule,
    bounds_of,
)
from lakehouse.tables.table import IcebergTable

_NUMBERS = types.INTEGER_TYPES | {"float", "double"}


@dataclass(frozen=True, kw_only=True)
class ColumnAggregateRule(EvaluableRule):
    """Bounds on an aggregate of one column."""

    function: Literal["avg", "sum"]

    @property
    def sql(self) -> str:
        return f"{self.function}({self.columns[0]}) {self.bounds}"

    def check(self, table: DeclaringTable) -> None:
        """Check that the column is numeric, and that its aggregate is not personal data."""
        column = self.columns[0]
        column_type = types.parse(table.column(column).type)
        if not isinstance(column_type, types.Decimal) and str(column_type) not in _NUMBERS:
            raise DeclarationError(
                f"{table.name}: rule {self.name} is about {column}, which is {column_type};"
                " expected a column of numbers."
            )
        if column in table.masked_columns:
            what = "is personal" if column in table.personal_columns else "identifies a person"
            raise DeclarationError(
                f"{table.name}: rule {self.name} is about {column}, which {what}:"
                " an aggregate of few rows reveals their values.",
                next_step="Declare bounds for each value, with between(…).",
            )

    def aggregates(self, table: IcebergTable, where: str = "") -> Mapping[str, str]:
        value = identifier(self.columns[0])
        # A sum of integers can need more digits than their type; Spark fails on overflow.
        if self.function == "sum" and table.column(self.columns[0]).type in types.INTEGER_TYPES:
            value = f"CAST({value} AS DECIMAL(38,0))"
        only = f" FILTER (WHERE {where})" if where else ""
        return {self.name: f"{self.function}({value}){only}"}


def null_fraction(column: str, *, at_most: float, **options: Unpack[CountOptions]) -> Rule:
    """At most a share of the rows has NULL in the column.

    :param at_most: the share, from 0 to below 1.
    """
    on_failure = options.setdefault("on_failure", "block")
    if on_failure == "quarantine":
        raise DeclarationError(
            f"null_fraction({column!r}) tolerates rows without a value, and cannot quarantine"
            " them.",
            next_step=(
                f"Declare not_null({column!r}, fail_above=…) to quarantine them up to a share."
            ),
        )
    above = "fail_above" if on_failure == "block" else "warn_above"
    return RowRule.declare(
        "null_fraction",
        (column,),
        f"at most {at_most:.4g} of all {column} are null",
        {above: at_most, **options},
        violated_by=f"({identifier(column)} IS NULL)",
    )


def mean(
    column: str,
    low: Number | None = None,
    high: Number | None = None,
    **options: Unpack[BoundOptions],
) -> Rule:
    """The mean of a numeric column is from `low` to `high`; it passes without values, and fails
    on NaN.
    """
    return _aggregate("mean", "avg", column, bounds_of(f"mean({column!r})", low, high), options)


def total(
    column: str,
    low: Number | None = None,
    high: Number | None = None,
    **options: Unpack[BoundOptions],
) -> Rule:
    """The sum of a numeric column is from `low` to `high`; it passes without values, and fails
    on NaN.
    """
    return _aggregate(
        "total", "sum", column, bounds_of(f"total({column!r})", low, high), options
    )


def _aggregate(
    kind: str,
    function: Literal["avg", "sum"],
    column: str,
    bounds: Bounds,
    options: BoundOptions,
) -> Rule:
    description = f"{kind} of {column} is {bounds}"
    return ColumnAggregateRule.declare(
        kind, (column,), description, options, function=function, bounds=bounds
    )
