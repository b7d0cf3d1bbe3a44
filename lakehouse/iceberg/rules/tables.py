"""Rules on many rows at once: no single row can be refused for them.

As rules on rows do, they speak of the rows that a write brings: what is appended, the run's
partitions, what is merged, or all of a table that is replaced; in a check alone, of all rows,
or of those of the partitions asked for. So a mean can be bounded anywhere, and a total where
those are always the same rows.
"""

from collections.abc import Sequence

from lakehouse.errors import DeclarationError
from lakehouse.tables.bounds import Bounds, Number, Outside, bounds_of
from lakehouse.tables.measures import Aggregate, Difference
from lakehouse.tables.quoting import identifier
from lakehouse.tables.rule import OnFailure, References, Rule, made


def unique(*columns: str, on_failure: OnFailure = "block", **options: object) -> Rule:
    """Say that no two rows have the same values in these columns; a row with a NULL among them
    counts as itself.
    """
    return made(
        "unique",
        columns,
        f"{', '.join(columns)} is unique",
        on_failure,
        options,
        unique_on=columns,
    )


def references(
    columns: str | Sequence[str],
    table: str,
    other_columns: str | Sequence[str] | None = None,
    *,
    on_failure: OnFailure = "block",
    **options: object,
) -> Rule:
    """Say that each row has a partner in another table; a row with a NULL among the columns
    passes.

    An input of the write is looked at as the write reads it, and any other table as readers see
    it.

    :param other_columns: the other table's columns, in the same order; those of the same names
        where left out.
    """
    mine = _names(columns)
    theirs = _names(other_columns) if other_columns is not None else mine
    if len(mine) != len(theirs) or not mine:
        raise DeclarationError(
            f"references({columns!r}, {table!r}, {other_columns!r}) compares {len(mine)} with"
            f" {len(theirs)} columns; expected as many of one table as of the other."
        )
    return made(
        "references",
        mine,
        f"{', '.join(mine)} is one of {table} ({', '.join(theirs)})",
        on_failure,
        options,
        references=References(table, theirs),
    )


def null_fraction(
    column: str, *, at_most: float, on_failure: OnFailure = "block", **options: object
) -> Rule:
    """Say that no more than a share of the rows, from 0 to below 1, lacks a value in the
    column.
    """
    if on_failure == "quarantine":
        raise DeclarationError(
            f"null_fraction({column!r}) tolerates rows without a value, and cannot quarantine"
            " them.",
            next_step=f"Say not_null({column!r}, fail_above=…) to take them out up to a share.",
        )
    above = "fail_above" if on_failure == "block" else "warn_above"
    return made(
        "null_fraction",
        (column,),
        f"at most {at_most:.4g} of all {column} are null",
        on_failure,
        {above: at_most, **options},
        violated_by=f"({identifier(column)} IS NULL)",
    )


def mean(
    column: str,
    low: Number | None = None,
    high: Number | None = None,
    *,
    warn_outside: Outside | None = None,
    on_failure: OnFailure = "block",
    **options: object,
) -> Rule:
    """Say that the mean of a numeric column is from `low` to `high`; without any value it
    passes, NaN does not.
    """
    return _figure(
        "mean", Aggregate("avg", column), low, high, warn_outside, on_failure, options
    )


def total(
    column: str,
    low: Number | None = None,
    high: Number | None = None,
    *,
    warn_outside: Outside | None = None,
    on_failure: OnFailure = "block",
    **options: object,
) -> Rule:
    """Say that the sum of a numeric column is from `low` to `high`; without any value it
    passes, NaN does not.
    """
    return _figure(
        "total", Aggregate("sum", column), low, high, warn_outside, on_failure, options
    )


def reconciles(
    table: str,
    *,
    here: str = "count(1)",
    there: str = "count(1)",
    by: str | None = None,
    at_most: float = 0.0,
    warn_above: float | None = None,
    on_failure: OnFailure = "block",
    **options: object,
) -> Rule:
    """Say that a figure of this table is the same in another, such as the number of rows that
    it was computed from.

    In a write both are those of the run's partitions, where it has any, and the other table's
    is of what was read. Where both are of whole tables, `count(1)` is known from metadata;
    anything else is one query for all such rules.

    :param here: a SQL aggregate of this table.
    :param there: a SQL aggregate of the other one.
    :param by: the other table's column that has the partitions of this one.
    :param at_most: how far they may lie apart, as a share of the other table's figure.
    """
    return made(
        f"reconciles_{table.replace('.', '_')}",
        (),
        f"{here} is {there} of {table}"
        + (f", give or take {at_most:.4g} of it" if at_most else ""),
        on_failure,
        options,
        measure=Difference(here, table, there, by),
        bounds=Bounds(high=at_most),
        warn_outside=None if warn_above is None else Bounds(high=warn_above),
    )


def _figure(
    kind: str,
    aggregate: Aggregate,
    low: Number | None,
    high: Number | None,
    warn_outside: Outside | None,
    on_failure: OnFailure,
    options: dict[str, object],
) -> Rule:
    bounds = bounds_of(f"{kind}({aggregate.column!r})", low, high)
    return made(
        kind,
        (aggregate.column,),
        f"{kind} of {aggregate.column} is {bounds}",
        on_failure,
        options,
        measure=aggregate,
        bounds=bounds,
        warn_outside=None if warn_outside is None else Bounds(*warn_outside),
    )


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
