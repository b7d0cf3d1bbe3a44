"""The rule that a delivered value can be cast to the type of its column."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from lakehouse.tables.casts import Cast
from lakehouse.tables.quoting import identifier
from lakehouse.tables.rule import OnFailure, Rule


@dataclass(frozen=True, kw_only=True)
class CastableRule(Rule):
    """A rule that casts a column; rows whose value the cast turns into NULL break it.

    `follows_from_type` marks a rule that was derived from the column type; it is derived again
    when a declaration changes.
    """

    castable_as: Cast
    follows_from_type: bool = field(default=False, compare=False, repr=False)
    on_failure: OnFailure = "quarantine"
    is_row_rule: ClassVar[bool] = True

    @property
    def cast(self) -> Cast:
        return self.castable_as

    @property
    def sql(self) -> str:
        return self._cast_failed(identifier, self.cast.identity)

    def predicate(self, delivered: Callable[[str], str] = identifier) -> str:
        return self._cast_failed(delivered, self.cast.sql)

    def _cast_failed(self, delivered: Callable[[str], str], cast: Callable[[str], str]) -> str:
        raw = delivered(self.columns[0])
        return f"({raw} IS NOT NULL AND {cast(raw)} IS NULL)"


@dataclass(frozen=True, kw_only=True)
class FittingRule(CastableRule):
    """The rule for a computed decimal or integer whose type has a different number of digits."""

    is_declared: ClassVar[bool] = False


def castable_from_type(column: str, column_type: str, time_zone: str) -> CastableRule:
    """Return the rule of a text column that is cast by its declared type."""
    return CastableRule.declare(
        "castable",
        (column,),
        castable_text(column, column_type),
        {},
        castable_as=Cast(column_type, time_zone),
        follows_from_type=True,
    )


def castable_if_fits(column: str, column_type: str) -> FittingRule:
    """Return the rule that a computed decimal or integer fits its column."""
    text, cast = castable_text(column, column_type), Cast(column_type)
    return FittingRule.declare("castable", (column,), text, {}, castable_as=cast)


def castable_text(column: str, column_type: str) -> str:
    return f"{column} can be read as {column_type}"
