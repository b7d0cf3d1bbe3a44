"""Check on the share of rejected rows of a write, for each table with a quarantine."""

from typing import ClassVar

from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.rule import Bounds, OnFailure
from lakehouse.tables.table_validation import REFUSED_SHARE

HALF = 0.5
ENOUGH_ROWS = 100
"""With fewer rows, half can be rejected by chance."""


class RefusedShareRule(EvaluableRule):
    """Share of the rows of a write that were rejected; the write itself counts them."""

    warns_as_error: ClassVar[bool] = True

    @property
    def sql(self) -> str:
        return f"share of the rows rejected {self.bounds}"

    @property
    def tolerated_share(self) -> float:
        """The share up to which the check passes; 0 without a bound."""
        return float((self.bounds and self.bounds.high) or 0)


def refused_share(
    table: TableDeclaration, rows: int = ENOUGH_ROWS, *, is_first: bool = False
) -> RefusedShareRule:
    """Return the rule on the share of rejected rows.

    :param rows: number of rows of the write.
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
    """Return the same rule without blocking, as an error."""
    share = rule.tolerated_share
    return _rule("warn", share, Bounds(high=share))


def _rule(
    on_failure: OnFailure, limit: float, bounds: Bounds, warn_outside: Bounds | None = None
) -> RefusedShareRule:
    share = "half" if limit == HALF else f"{limit * 100:g} %"
    return RefusedShareRule(
        REFUSED_SHARE,
        f"No more than {share} of the rows are rejected",
        (),
        on_failure,
        bounds,
        warn_outside,
    )
