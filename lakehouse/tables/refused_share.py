"""The check that each table with a quarantine has: how much of what a write was given was
refused.
"""

from lakehouse.tables.bounds import ANYTHING, Bounds
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.measures import RefusedShare
from lakehouse.tables.rule import Rule

NAME = "refused_share"
HALF = 0.5
ENOUGH_ROWS = 100
"""Of fewer rows, half may be refused by chance."""


def refused_share(
    table: TableDeclaration, rows: int = ENOUGH_ROWS, *, is_first: bool = False
) -> Rule:
    """Return what must hold of the share of a write's rows that is refused.

    :param rows: how many rows the write was given.
    :param is_first: whether nothing of the table was published before.
    """
    declared = table.max_refused_share
    told = HALF if rows >= ENOUGH_ROWS else None
    limit = told if is_first and declared is None else declared
    if limit is None:
        return _rule("warn", HALF, Bounds(None, told) if told else ANYTHING)
    return _rule(
        "block",
        limit,
        Bounds(None, limit),
        Bounds(None, told) if told and told < limit else None,
    )


def without_blocking(rule: Rule) -> Rule:
    """Return the same rule where it holds nothing back, and is an error all the same."""
    assert rule.bounds.high is not None
    return _rule("warn", float(rule.bounds.high), rule.bounds)


def is_error_by_itself(rule: Rule) -> bool:
    """Whether a check is an ERROR where it does not hold, though it holds nothing back."""
    return isinstance(rule.measure, RefusedShare) and rule.on_failure == "warn"


def _rule(
    on_failure: str, limit: float, bounds: Bounds, warn_outside: Bounds | None = None
) -> Rule:
    said = "half" if limit == HALF else f"{limit * 100:g} %"
    return Rule(
        NAME,
        f"No more than {said} of the rows are refused",
        (),
        on_failure,  # type: ignore[arg-type]
        measure=RefusedShare(),
        bounds=bounds,
        warn_outside=warn_outside,
    )
