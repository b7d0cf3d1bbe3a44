"""What must hold of a table's rows, as pure functions to a predicate.

A rule on single rows is a SQL predicate that is true for each row that *breaks* it, never NULL.
One rule serves three times: it splits refused rows off, it is a reason in the quarantine, and it is the check.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.casts import cast_sql
from lakehouse.iceberg.declaration import types
from lakehouse.iceberg.quoting import identifier, literal, literals

OnFailure = Literal["quarantine", "block", "warn"]
_NAME = re.compile(r"^[A-Za-z0-9_]+$")


@dataclass(frozen=True)
class Rule:
    """One thing that must hold of a table.

    `violated_by` is the SQL predicate of the rows that break a row rule, over the table's typed columns; it is None
    for a rule on the whole frame (`unique_on`) and for `castable`, whose predicate compares what was delivered with
    what it became (see `castable_as`).
    """

    name: str
    description: str
    columns: tuple[str, ...]
    on_failure: OnFailure
    violated_by: str | None = None
    unique_on: tuple[str, ...] = ()
    castable_as: str | None = None
    time_zone: str = "UTC"
    """Where delivered moments without an offset were written (`castable`)."""
    tolerated_fraction: float = 0.0
    """Share of the rows, from 0 to 1, that may break the rule before it counts as failed (`block` and `warn`)."""

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise DeclarationError(
                f"rule name {self.name!r} has characters that Dagster's check names lack; "
                "expected letters, digits and underscores.",
                next_step="Give the rule a name=… of its own.",
            )
        if self.on_failure not in ("quarantine", "block", "warn"):
            raise DeclarationError(
                f"rule {self.name}: on_failure is {self.on_failure!r}; expected quarantine, block or warn."
            )
        if self.on_failure == "quarantine" and not self.is_row_rule:
            raise DeclarationError(
                f"rule {self.name} is about the whole table, and no single row can be quarantined for it; "
                "expected on_failure block or warn."
            )
        if not 0.0 <= self.tolerated_fraction < 1.0:
            raise DeclarationError(
                f"rule {self.name}: tolerated_fraction is {self.tolerated_fraction}; expected 0 to below 1."
            )
        if self.tolerated_fraction and self.on_failure == "quarantine":
            raise DeclarationError(
                f"rule {self.name} quarantines, and has a tolerated_fraction; a row is refused or it is not.",
                next_step="Leave tolerated_fraction out, or use on_failure='block' or 'warn'.",
            )

    @property
    def is_row_rule(self) -> bool:
        """Whether a single row can break it."""
        return not self.unique_on

    def predicate(self, delivered: Callable[[str], str] = lambda column: identifier(column)) -> str:
        """Return the SQL predicate, never NULL, of the rows that break this rule.

        :param delivered: gives the SQL of a column as it was delivered, before it was cast.
        """
        if self.castable_as is not None:
            (column,) = self.columns
            raw = delivered(column)
            return f"({raw} IS NOT NULL AND {self.cast_sql(raw)} IS NULL)"
        if self.violated_by is None:
            raise DeclarationError(f"rule {self.name} is about the whole table and has no predicate on rows.")
        return self.violated_by

    def cast_sql(self, raw: str) -> str:
        """Return SQL for a delivered value in the type that `castable` names; NULL where it cannot be read as one."""
        assert self.castable_as is not None
        return cast_sql(raw, self.castable_as, self.time_zone)


def not_null(column: str, *, on_failure: OnFailure = "quarantine", **options: object) -> Rule:
    """Say that the column has a value in each row."""
    return _rule(
        "not_null",
        (column,),
        f"{column} is not null",
        on_failure,
        options,
        violated_by=f"({identifier(column)} IS NULL)",
    )


def unique(*columns: str, on_failure: OnFailure = "block", **options: object) -> Rule:
    """Say that no two rows have the same values in these columns; a row with a NULL among them counts as itself."""
    return _rule("unique", columns, f"{', '.join(columns)} is unique", on_failure, options, unique_on=columns)


def excluded(column: str, values: Iterable[object], *, on_failure: OnFailure = "quarantine", **options: object) -> Rule:
    """Say that the column has none of these values; NULL passes."""
    values = tuple(values)
    _need_values("excluded", column, values)
    return _rule(
        "excluded",
        (column,),
        f"{column} is none of {_shown(values)}",
        on_failure,
        options,
        violated_by=f"coalesce({identifier(column)} IN {literals(values)}, false)",
    )


def accepted(column: str, values: Iterable[object], *, on_failure: OnFailure = "quarantine", **options: object) -> Rule:
    """Say that the column has one of these values; NULL passes."""
    values = tuple(values)
    _need_values("accepted", column, values)
    return _rule(
        "accepted",
        (column,),
        f"{column} is one of {_shown(values)}",
        on_failure,
        options,
        violated_by=f"coalesce({identifier(column)} NOT IN {literals(values)}, false)",
    )


def between(
    column: str,
    low: object = None,
    high: object = None,
    *,
    on_failure: OnFailure = "quarantine",
    **options: object,
) -> Rule:
    """Say that the column is from `low` to `high`, both included, either one open; NULL passes, NaN does not."""
    if low is None and high is None:
        raise DeclarationError(f"between({column!r}) has no bounds; expected low, high or both.")
    name = identifier(column)
    breaks = _outside(name, low, high)
    # Spark orders NaN above every number, so that an upper bound refuses it; a lower bound alone must ask.
    if high is None and isinstance(low, (int, float)):
        breaks.append(f"isnan(try_cast({name} AS DOUBLE))")
    return _rule(
        "between",
        (column,),
        f"{column} is {_bounds(low, high)}",
        on_failure,
        options,
        violated_by=f"coalesce({' OR '.join(breaks)}, false)",
    )


def length(
    column: str,
    low: int | None = None,
    high: int | None = None,
    *,
    on_failure: OnFailure = "quarantine",
    **options: object,
) -> Rule:
    """Say that the column has from `low` to `high` characters, both included, either one open; NULL passes."""
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds or bounds[0] < 0 or bounds != sorted(bounds):
        raise DeclarationError(
            f"length({column!r}) is from {low} to {high}; expected 0 <= low <= high, or one of them."
        )
    breaks = _outside(f"char_length({identifier(column)})", low, high)
    return _rule(
        "length",
        (column,),
        f"{column} has {_bounds(low, high)} characters",
        on_failure,
        options,
        violated_by=f"coalesce({' OR '.join(breaks)}, false)",
    )


def pattern(column: str, regex: str, *, on_failure: OnFailure = "quarantine", **options: object) -> Rule:
    """Say that a Java regular expression matches the whole of the column; NULL passes."""
    # `\z` is the very end, where `$` would let a line break follow.
    whole = literal(rf"\A(?:{regex})\z")
    return _rule(
        "pattern",
        (column,),
        f"{column} matches {regex}",
        on_failure,
        options,
        violated_by=f"coalesce(NOT {identifier(column)} RLIKE {whole}, false)",
    )


def castable(
    column: str, to: str, *, time_zone: str = "UTC", on_failure: OnFailure = "quarantine", **options: object
) -> Rule:
    """Say that what was delivered in the column can be read as the type, with nothing lost; NULL passes.

    The table's write then casts the column itself, so that the asset hands on what it got.

    :param time_zone: where moments without an offset were written, and whose days a `date` is one of.
    """
    return _rule(
        "castable",
        (column,),
        f"{column} can be read as {to}",
        on_failure,
        options,
        castable_as=str(types.parse(to)),
        time_zone=time_zone,
    )


def expression(
    name: str,
    holds: str,
    *,
    columns: Iterable[str] = (),
    on_failure: OnFailure = "quarantine",
    **options: object,
) -> Rule:
    """Say that a SQL expression over the row is true; where it is NULL it does not count as broken.

    :param columns: the columns that the expression reads, so that personal ones among them are masked.
    """
    return _rule(
        "expression",
        tuple(columns),
        holds,
        on_failure,
        {"name": name, **options},
        violated_by=f"coalesce(NOT ({holds}), false)",
    )


def _rule(
    kind: str,
    columns: tuple[str, ...],
    description: str,
    on_failure: OnFailure,
    options: dict[str, object],
    **how: object,
) -> Rule:
    made = Rule(
        name=str(options.pop("name", None) or "_".join((kind, *columns))),
        description=description,
        columns=columns,
        on_failure=on_failure,
        **how,  # type: ignore[arg-type]
    )
    return replace(made, **options) if options else made  # type: ignore[arg-type]


def _outside(value: str, low: object, high: object) -> list[str]:
    """Return the predicates of the SQL values that lie outside of bounds, of which either may be None."""
    breaks = [f"{value} < {literal(low)}"] if low is not None else []
    return breaks + ([f"{value} > {literal(high)}"] if high is not None else [])


def _bounds(low: object, high: object) -> str:
    return " and ".join(
        f"{word} {bound}" for word, bound in (("at least", low), ("at most", high)) if bound is not None
    )


def _need_values(kind: str, column: str, values: tuple[object, ...]) -> None:
    if not values or None in values:
        raise DeclarationError(f"{kind}({column!r}) was given {values!r}; expected at least one value, and no NULL.")


def _shown(values: tuple[object, ...]) -> str:
    return ", ".join(str(value) for value in values)
