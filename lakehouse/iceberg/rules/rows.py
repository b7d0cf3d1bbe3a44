"""Rules on single rows: each gives the predicate of the rows that break it.

One rule serves three times: it splits refused rows off, it is a reason in the quarantine, and
it is the check.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, broken_rows
from lakehouse.tables import types
from lakehouse.tables.bounds import bounds_text
from lakehouse.tables.castable_rule import CastableRule, castable_text
from lakehouse.tables.casts import Cast
from lakehouse.tables.column import tuple_of
from lakehouse.tables.quoting import identifier, literal, literals
from lakehouse.tables.rule import CountOptions, OnFailure, Rule, ThresholdOptions
from lakehouse.tables.table import IcebergTable

_BLANK = r"^[\s\p{Z}\p{Cc}\p{Cf}]*$"
"""Spaces of any script, and what cannot be seen."""


@dataclass(frozen=True, kw_only=True)
class RowRule(EvaluableRule):
    """A rule that single rows break: those that meet a SQL predicate, never NULL, over the
    table's typed columns.
    """

    violated_by: str
    on_failure: OnFailure = "quarantine"
    is_row_rule: ClassVar[bool] = True

    @property
    def sql(self) -> str:
        """The predicate of the rows that break it."""
        return self.predicate()

    def predicate(self, delivered: Callable[[str], str] = identifier) -> str:  # noqa: ARG002
        """Return the predicate of the rows that break it."""
        return self.violated_by

    @property
    def asks_for_value(self) -> bool:
        """Whether it says no more than that a column has a value."""
        return any(self.violated_by == _is_null(column) for column in self.columns)

    def aggregates(self, table: IcebergTable, where: str = "") -> Mapping[str, str]:
        """Count the rows that break it."""
        return broken_rows(self, table, where)


def not_null(column: str, **options: Unpack[CountOptions]) -> Rule:
    """Say that the column has a value in each row."""
    return RowRule.declare(
        "not_null",
        (column,),
        f"{column} is not null",
        options,
        violated_by=_is_null(column),
    )


def _is_null(column: str) -> str:
    return f"({identifier(column)} IS NULL)"


def not_blank(column: str, **options: Unpack[CountOptions]) -> Rule:
    """Say that the column holds something that can be seen, and not spaces alone; NULL
    passes.
    """
    name = identifier(column)
    # Most values begin with a letter or digit, and then no regular expression is needed.
    may_be_blank = f"NOT ascii({name}) BETWEEN 33 AND 126"
    return RowRule.declare(
        "not_blank",
        (column,),
        f"{column} is more than spaces",
        options,
        violated_by=f"coalesce({may_be_blank} AND {name} RLIKE {literal(_BLANK)}, false)",
    )


def excluded(
    column: str,
    values: Iterable[object],
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that the column has none of these values; NULL passes."""
    values = _values_of(values)
    _need_values("excluded", column, values)
    return RowRule.declare(
        "excluded",
        (column,),
        f"{column} is none of {_shown(values)}",
        options,
        violated_by=f"coalesce({identifier(column)} IN {literals(values)}, false)",
    )


def accepted(
    column: str,
    values: Iterable[object],
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that the column has one of these values; NULL passes."""
    values = _values_of(values)
    _need_values("accepted", column, values)
    return RowRule.declare(
        "accepted",
        (column,),
        f"{column} is one of {_shown(values)}",
        options,
        violated_by=f"coalesce({identifier(column)} NOT IN {literals(values)}, false)",
    )


def between(
    column: str,
    low: object = None,
    high: object = None,
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that the column is from `low` to `high`, both included, either one open; NULL passes,
    NaN does not.
    """
    if low is None and high is None:
        raise DeclarationError(
            f"between({column!r}) has no bounds; expected low, high or both."
        )
    name = identifier(column)
    breaks = _outside(name, low, high)
    # Spark orders NaN above every number, so that an upper bound refuses it; a lower bound
    # alone must ask.
    if high is None and isinstance(low, (int, float, Decimal)):
        # Known from the type where there is none: nothing is then evaluated for a row.
        breaks.append(
            f"(typeof({name}) IN ('float', 'double') AND isnan(try_cast({name} AS DOUBLE)))"
        )
    return RowRule.declare(
        "between",
        (column,),
        f"{column} is {bounds_text(low, high)}",
        options,
        violated_by=f"coalesce({' OR '.join(breaks)}, false)",
    )


def length(
    column: str,
    low: int | None = None,
    high: int | None = None,
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that the column has from `low` to `high` characters, both included, either one open;
    NULL passes.
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds or bounds[0] < 0 or bounds != sorted(bounds):
        raise DeclarationError(
            f"length({column!r}) is from {low} to {high}; expected 0 <= low <= high, or one of"
            " them."
        )
    breaks = _outside(f"char_length({identifier(column)})", low, high)
    return RowRule.declare(
        "length",
        (column,),
        f"{column} has {bounds_text(low, high)} characters",
        options,
        violated_by=f"coalesce({' OR '.join(breaks)}, false)",
    )


def pattern(column: str, regex: str, **options: Unpack[CountOptions]) -> Rule:
    """Say that a Java regular expression matches the whole of the column; NULL passes.

    :param regex: such as `[A-Z]{2}[0-9]+`; no `^` and `$` is needed.
    """
    # `\z` is the very end, where `$` would let a line break follow.
    whole = literal(rf"\A(?:{regex})\z")
    return RowRule.declare(
        "pattern",
        (column,),
        f"{column} matches {regex}",
        options,
        violated_by=f"coalesce(NOT {identifier(column)} RLIKE {whole}, false)",
    )


def not_after(
    column: str,
    other: str,
    *,
    days: int = 0,
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that a moment is at most some days after that of another column of its row; NULL
    passes.

    What orders versions should have it: a moment of the year 9999 would win for ever.

    :param other: the other column, such as `_ingested_at`.
    """
    if days < 0:
        raise DeclarationError(
            f"not_after({column!r}, {other!r}) has {days} days; expected 0 or more."
        )
    latest = f"{identifier(other)} + INTERVAL '{days}' DAY"
    return RowRule.declare(
        "not_after",
        (column, other),
        f"{column} is at most {days} {'day' if days == 1 else 'days'} after {other}",
        options,
        violated_by=f"coalesce({identifier(column)} > {latest}, false)",
    )


def dated(
    column: str,
    *,
    since: str,
    until: str,
    time_zone: str = "UTC",
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that a day is from one such as `2020-01-01` on to that of a moment of its row; NULL
    passes.

    A row that is dated later than `until="_ingested_at"` cannot have happened yet.

    :param column: a `date`.
    :param since: the first day, such as `2020-01-01`.
    :param until: the column of the moment.
    :param time_zone: whose days they are; that of the table does not count here.
    """
    day = f"to_date(from_utc_timestamp({_plain(until)}, {literal(time_zone)}))"
    return RowRule.declare(
        "dated",
        (column,),
        f"{column} is from {since} to the day of {until}",
        options,
        violated_by=(
            f"coalesce(NOT ({_plain(column)} >= DATE{literal(since)} AND"
            f" {_plain(column)} <= {day}), false)"
        ),
    )


def castable(
    column: str,
    to: str,
    *,
    time_zone: str = "UTC",
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that what was delivered in the column can be read as the type, with nothing lost but
    what of a moment is finer than a microsecond; NULL passes.

    The table's write then casts the column itself, so that the asset hands on what it got. In a
    table that says `rows_of` it follows from the column's type, unless another is declared.

    :param to: the type, as Spark writes it.
    :param time_zone: where moments without an offset were written, and whose days a `date` is
        one of; that of the table does not count here.
    """
    return CastableRule.declare(
        "castable",
        (column,),
        castable_text(column, to),
        options,
        castable_as=Cast(str(types.parse(to)), time_zone),
    )


def expression(
    name: str,
    holds: str,
    *,
    columns: Iterable[str] = (),
    **options: Unpack[ThresholdOptions],
) -> Rule:
    """Say that a SQL expression over the row is true; where it is NULL it does not count as
    broken.

    :param name: the name of its check: letters, digits and underscores.
    :param holds: the expression, such as `paid <= total`.
    :param columns: the columns that the expression reads, so that personal ones among them are
        masked.
    """
    return RowRule.declare(
        "expression",
        tuple_of(columns),
        holds,
        {"name": name, **options},
        violated_by=f"coalesce(NOT ({holds}), false)",
    )


def _plain(column: str) -> str:
    """Return a column in SQL, quoted only where its name is no plain one.

    The digest of a declaration covers the text of its rules, and was stamped with such names.
    """
    return column if column.isidentifier() else identifier(column)


def _outside(value: str, low: object, high: object) -> list[str]:
    """Return the predicates of the SQL values that lie outside of bounds, of which either may
    be None.
    """
    breaks = [f"{value} < {literal(low)}"] if low is not None else []
    return breaks + ([f"{value} > {literal(high)}"] if high is not None else [])


def _values_of(values: Iterable[object]) -> tuple[object, ...]:
    """Return values of which a single one may be given as text: it is no list of letters."""
    return (values,) if isinstance(values, str | bytes) else tuple(values)


def _need_values(kind: str, column: str, values: tuple[object, ...]) -> None:
    if not values or None in values:
        raise DeclarationError(
            f"{kind}({column!r}) was given {values!r}; expected at least one value, and no"
            " NULL."
        )


def _shown(values: tuple[object, ...]) -> str:
    return ", ".join(str(value) for value in values)
