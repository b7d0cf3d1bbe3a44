"""The rule that a delivered value can be read as the type of its column."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from lakehouse.tables.casts import Cast
from lakehouse.tables.quoting import identifier
from lakehouse.tables.rule import OnFailure, Rule


@dataclass(frozen=True, kw_only=True)
class CastableRule(Rule):
    """A rule that says how a column is read: rows break it whose delivered value was lost by
    that.

    `follows_from_type` is of one that nobody declared: it is made anew where a declaration is
    changed.
    """

    castable_as: Cast
    follows_from_type: bool = field(default=False, compare=False, repr=False)
    on_failure: OnFailure = "quarantine"
    is_row_rule: ClassVar[bool] = True

    @property
    def cast(self) -> Cast:
        """How the column is read from what is delivered."""
        return self.castable_as

    @property
    def sql(self) -> str:
        """What tells it from other rules."""
        return self._lost(identifier, self.cast.identity)

    def predicate(self, delivered: Callable[[str], str] = identifier) -> str:
        """Return the predicate of the rows whose delivered value cannot be read."""
        return self._lost(delivered, self.cast.sql)

    def _lost(self, delivered: Callable[[str], str], cast: Callable[[str], str]) -> str:
        raw = delivered(self.columns[0])
        return f"({raw} IS NOT NULL AND {cast(raw)} IS NULL)"


@dataclass(frozen=True, kw_only=True)
class FittingRule(CastableRule):
    """The rule of a decimal or integer that a function returns in a type with other digits."""

    is_declared: ClassVar[bool] = False


def castable_from_type(column: str, column_type: str, time_zone: str) -> CastableRule:
    """Return the rule of a column that is read from text by its type alone."""
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
    """Say in words what the rule asks of a column."""
    return f"{column} can be read as {column_type}"
