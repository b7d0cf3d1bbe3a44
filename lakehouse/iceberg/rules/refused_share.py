"""The check that each table with a quarantine has: how much of what a write brought was
refused.
"""

from typing import ClassVar

from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule
from lakehouse.tables.bounds import Bounds
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.rule import OnFailure
from lakehouse.tables.rule_validation import REFUSED_SHARE

HALF = 0.5
ENOUGH_ROWS = 100
"""Of fewer rows, half may be refused by chance."""


class RefusedShareRule(EvaluableRule):
    """Rows that a write refused, as a share of those that it brought; the write itself counts
    them.
    """

    warns_as_error: ClassVar[bool] = True

    @property
    def sql(self) -> str:
        """The share and its bounds."""
        return f"share of the rows refused {self.bounds}"

    @property
    def tolerated_share(self) -> float:
        """The share up to which it holds; 0 where it has no bound."""
        return float((self.bounds and self.bounds.high) or 0)


def refused_share(
    table: TableDeclaration, rows: int = ENOUGH_ROWS, *, is_first: bool = False
) -> RefusedShareRule:
    """Return what must hold of the share of a write's rows that is refused.

    :param rows: how many rows the write brought.
    :param is_first: whether nothing of the table was published before.
    """
    declared = table.max_refused_share
    warn_limit = HALF if rows >= ENOUGH_ROWS else None
    limit = warn_limit if is_first and declared is None else declared
    if limit is None:
        return _rule("warn", HALF, Bounds(high=warn_limit))
    warns_first = warn_limit is not None and warn_limit < limit
    return _rule(
        "block", limit, Bounds(high=limit), Bounds(high=warn_limit) if warns_first else None
    )


def without_blocking(rule: RefusedShareRule) -> RefusedShareRule:
    """Return the same rule where it holds nothing back, and is an error all the same."""
    share = rule.tolerated_share
    return _rule("warn", share, Bounds(high=share))


def _rule(
    on_failure: OnFailure, limit: float, bounds: Bounds, warn_outside: Bounds | None = None
) -> RefusedShareRule:
    share = "half" if limit == HALF else f"{limit * 100:g} %"
    return RefusedShareRule(
        REFUSED_SHARE,
        f"No more than {share} of the rows are refused",
        (),
        on_failure,
        bounds,
        warn_outside,
    )
