"""Rules on single rows, each with the predicate of the rows that break it.

A rule splits off rejected rows, is a reason in the quarantine, and is a check.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule
from lakehouse.tables import types
from lakehouse.tables.casts import Cast
from lakehouse.tables.column import tuple_of
from lakehouse.tables.quoting import identifier, literal, literals
from lakehouse.tables.rule import (
    CastableRule,
    CountOptions,
    OnFailure,
    Rule,
    ThresholdOptions,
    bounds_text,
    castable_text,
)

_BLANK = r"^[\s\p{Z}\p{Cc}\p{Cf}]*$"
"""Unicode spaces and invisible characters."""


@dataclass(frozen=True, kw_only=True)
class RowRule(EvaluableRule):
    """A rule on single rows, broken by those that match a SQL predicate over typed columns.

    The predicate is never NULL.
    """

    violated_by: str
    on_failure: OnFailure = "quarantine"
    is_row_rule: ClassVar[bool] = True

    @property
    def sql(self) -> str:
        return self.predicate()

    def predicate(self, delivered: Callable[[str], str] = identifier) -> str:  # noqa: ARG002
        return self.violated_by

    @property
    def requires_value(self) -> bool:
        """Whether it only requires a value in a column."""
        return any(self.violated_by == _is_null(column) for column in self.columns)


@dataclass(frozen=True, kw_only=True)
class InPartitionsRule(RowRule):
    """The rule that all written rows are in the run's partitions.

    `violated_by` is empty without a run, since the partitions depend on it.
    """

    violated_by: str = ""

    @classmethod
    def of(cls, by: str, predicate: str = "") -> Self:
        """Return the rule for a column.

        :param predicate: SQL of the rows in the run's partitions; empty without a run.
        """
        return cls(
            name="in_partitions",
            description=f"{by} is in the run's partitions",
            columns=(by,),
            on_failure="block",
            violated_by=f"NOT coalesce({predicate}, false)" if predicate else "",
        )

    @property
    def sql(self) -> str:
        """The predicate of a run; the description if no run is known."""
        return self.violated_by or self.description


def not_null(column: str, **options: Unpack[CountOptions]) -> Rule:
    """The column is not NULL."""
    return RowRule.declare(
        "not_null", (column,), f"{column} is not null", options, violated_by=_is_null(column)
    )


def _is_null(column: str) -> str:
    return f"({identifier(column)} IS NULL)"


def not_blank(column: str, **options: Unpack[CountOptions]) -> Rule:
    """The column contains a visible character; NULL passes."""
    name = identifier(column)
    # Most values start with a letter or digit, and need no regular expression.
    may_be_blank = f"NOT ascii({name}) BETWEEN 33 AND 126"
    broken = f"{may_be_blank} AND {name} RLIKE {literal(_BLANK)}"
    return _rule("not_blank", (column,), f"{column} is more than spaces", broken, options)


def excluded(column: str, values: Iterable[object], **options: Unpack[CountOptions]) -> Rule:
    """The column has none of these values; NULL passes."""
    values = _values_of(values)
    _need_values("excluded", column, values)
    broken = f"{identifier(column)} IN {literals(values)}"
    return _rule(
        "excluded", (column,), f"{column} is none of {_shown(values)}", broken, options
    )


def accepted(column: str, values: Iterable[object], **options: Unpack[CountOptions]) -> Rule:
    """The column has one of these values; NULL passes."""
    values = _values_of(values)
    _need_values("accepted", column, values)
    broken = f"{identifier(column)} NOT IN {literals(values)}"
    return _rule("accepted", (column,), f"{column} is one of {_shown(values)}", broken, options)


def between(
    column: str, low: object = None, high: object = None, **options: Unpack[CountOptions]
) -> Rule:
    """The column is from `low` to `high`, inclusive; one can be omitted. NULL passes, NaN
    fails.
    """
    if low is None and high is None:
        raise DeclarationError(
            f"between({column!r}) has no bounds; expected low, high or both."
        )
    name = identifier(column)
    breaks = _outside(name, low, high)
    # Spark orders NaN above all numbers, so an upper bound rejects it; a lower bound needs a
    # check.
    if high is None and isinstance(low, (int, float, Decimal)):
        # Evaluated from the type for other types, without a cost per row.
        breaks.append(
            f"(typeof({name}) IN ('float', 'double') AND isnan(try_cast({name} AS DOUBLE)))"
        )
    description = f"{column} is {bounds_text(low, high)}"
    return _rule("between", (column,), description, " OR ".join(breaks), options)


def length(
    column: str,
    low: int | None = None,
    high: int | None = None,
    **options: Unpack[CountOptions],
) -> Rule:
    """The column has from `low` to `high` characters, inclusive; one can be omitted. NULL
    passes.
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds or bounds[0] < 0 or bounds != sorted(bounds):
        raise DeclarationError(
            f"length({column!r}) is from {low} to {high}; expected 0 <= low <= high, or one of"
            " them."
        )
    breaks = _outside(f"char_length({identifier(column)})", low, high)
    description = f"{column} has {bounds_text(low, high)} characters"
    return _rule("length", (column,), description, " OR ".join(breaks), options)


def pattern(column: str, regex: str, **options: Unpack[CountOptions]) -> Rule:
    """A Java regular expression matches the entire value; NULL passes.

    :param column: column of the values.
    :param regex: such as `[A-Z]{2}[0-9]+`, without `^` and `$`.
    """
    # `\z` is the end; `$` would allow a line break after it.
    anchored = literal(rf"\A(?:{regex})\z")
    broken = f"NOT {identifier(column)} RLIKE {anchored}"
    return _rule("pattern", (column,), f"{column} matches {regex}", broken, options)


def not_after(
    column: str, other: str, *, days: int = 0, **options: Unpack[CountOptions]
) -> Rule:
    """A timestamp is at most some days after that of another column in the row; NULL passes.

    Use it for columns that order versions: a timestamp in the year 9999 would always be the
    newest.

    :param other: the other column, such as `_ingested_at`.
    """
    if days < 0:
        raise DeclarationError(
            f"not_after({column!r}, {other!r}) has {days} days; expected 0 or more."
        )
    latest = f"{identifier(other)} + INTERVAL '{days}' DAY"
    description = f"{column} is at most {days} {'day' if days == 1 else 'days'} after {other}"
    broken = f"{identifier(column)} > {latest}"
    return _rule("not_after", (column, other), description, broken, options)


def dated(
    column: str,
    *,
    since: str,
    until: str,
    time_zone: str = "UTC",
    **options: Unpack[CountOptions],
) -> Rule:
    """A date is from a fixed date to the day of a timestamp in the row; NULL passes.

    With `until="_ingested_at"`, it rejects dates in the future.

    :param column: a `date`.
    :param since: the first day, such as `2020-01-01`.
    :param until: the timestamp column.
    :param time_zone: the zone of its day; the table's zone does not apply.
    """
    day = f"to_date(from_utc_timestamp({_plain(until)}, {literal(time_zone)}))"
    description = f"{column} is from {since} to the day of {until}"
    dates = f"{_plain(column)} >= DATE{literal(since)} AND {_plain(column)} <= {day}"
    return _rule("dated", (column,), description, f"NOT ({dates})", options)


def castable(
    column: str, to: str, *, time_zone: str = "UTC", **options: Unpack[CountOptions]
) -> Rule:
    """The delivered value can be converted to the type without loss, except for fractions of a
    microsecond; NULL passes.

    The write then casts the column, so the asset returns it unchanged. In a table with
    `rows_of`, the rule follows from the column's type, unless another is declared.

    :param to: the type, as Spark writes it.
    :param time_zone: the zone of timestamps without an offset, and of the day of a `date`; the
        table's zone does not apply.
    """
    return CastableRule.declare(
        "castable",
        (column,),
        castable_text(column, to),
        options,
        castable_as=Cast(str(types.parse(to)), time_zone),
    )


def expression(
    name: str, holds: str, *, columns: Iterable[str] = (), **options: Unpack[ThresholdOptions]
) -> Rule:
    """A SQL expression over the row is true; NULL passes.

    :param name: the name of its check: letters, digits and underscores.
    :param holds: the expression, such as `paid <= total`.
    :param columns: the columns that the expression reads, so that personal ones are masked.
    """
    named: Mapping[str, Any] = {"name": name, **options}
    return _rule("expression", tuple_of(columns), holds, f"NOT ({holds})", named)


def _rule(
    kind: str,
    columns: tuple[str, ...],
    description: str,
    broken: str,
    options: Mapping[str, Any],
) -> Rule:
    """Return a rule that NULL passes.

    :param broken: SQL of the rows that break it.
    """
    broken = f"coalesce({broken}, false)"
    return RowRule.declare(kind, columns, description, options, violated_by=broken)


def _plain(column: str) -> str:
    """Return a column in SQL, quoted only if necessary.

    The digest of a declaration contains the rule texts, and was stored with unquoted names.
    """
    return column if column.isidentifier() else identifier(column)


def _outside(value: str, low: object, high: object) -> list[str]:
    """Return SQL predicates for values outside of bounds, of which either can be None."""
    breaks = [f"{value} < {literal(low)}"] if low is not None else []
    return breaks + ([f"{value} > {literal(high)}"] if high is not None else [])


def _values_of(values: Iterable[object]) -> tuple[object, ...]:
    """Return values as a tuple; a single value can be given as text."""
    return (values,) if isinstance(values, str | bytes) else tuple(values)


def _need_values(kind: str, column: str, values: tuple[object, ...]) -> None:
    if not values or None in values:
        raise DeclarationError(
            f"{kind}({column!r}) has the values {values!r}; expected at least one value, and no"
            " NULL."
        )


def _shown(values: tuple[object, ...]) -> str:
    return ", ".join(str(value) for value in values)
