"""Rules that a table's metadata answers: they read no data and start no Spark job, whatever the
table's size.

In a write they look at the candidate, and in a check alone at what readers see; always at the
whole table.
"""

from datetime import timedelta

from lakehouse.errors import DeclarationError
from lakehouse.tables.bounds import Bounds, Outside, bounds_of, hours
from lakehouse.tables.measures import (
    AgeHours,
    AverageFileMb,
    Metadata,
    RowCount,
    RowCountChange,
    SchemaDifferences,
    against_text,
)
from lakehouse.tables.rule import OnFailure, Rule, made


def row_count(
    low: int | None = None,
    high: int | None = None,
    *,
    warn_outside: Outside | None = None,
    on_failure: OnFailure = "block",
    **options: object,
) -> Rule:
    """Say that the table has from `low` to `high` rows, both included, either one open."""
    bounds = bounds_of("row_count", low, high)
    said = f"the table has {bounds} rows"
    return _measured("row_count", said, RowCount(), bounds, warn_outside, on_failure, options)


def row_count_change(
    at_most: float | None = None,
    at_least: float | None = None,
    *,
    against: timedelta | int = 1,
    warn_outside: Outside | None = None,
    on_failure: OnFailure = "block",
    **options: object,
) -> Rule:
    """Say how much the table may have grown or shrunk against an earlier state, as a share of
    the rows it had then.

    Of 100 rows, `at_most=0.5` lets up to 150 stand and `at_least=-0.1` no fewer than 90. Where
    there is no such state, or it had no rows, it passes.

    :param against: how many writes earlier, or how long ago: then it is what readers saw at
        that time.
    """
    bounds = bounds_of("row_count_change", at_least, at_most)
    if not (against > timedelta(0) if isinstance(against, timedelta) else against >= 1):
        raise DeclarationError(
            f"row_count_change(against={against!r}) is not in the past; expected 1 write or"
            " more."
        )
    said = (
        f"the number of rows changed by {bounds} of what it was {against_text(against)} earlier"
    )
    return _measured(
        "row_count_change",
        said,
        RowCountChange(against),
        bounds,
        warn_outside,
        on_failure,
        options,
    )


def average_file_mb(
    low: float | None = None,
    high: float | None = None,
    *,
    warn_outside: Outside | None = None,
    on_failure: OnFailure = "warn",
    **options: object,
) -> Rule:
    """Say that the table's files have from `low` to `high` megabytes on average; without files
    it passes.
    """
    bounds = bounds_of("average_file_mb", low, high)
    said = f"files have {bounds} MB on average"
    return _measured(
        "average_file_mb", said, AverageFileMb(), bounds, warn_outside, on_failure, options
    )


def schema_as_declared(*, on_failure: OnFailure = "block", **options: object) -> Rule:
    """Say that the table's columns are those declared: names, types, order and comments."""
    said = "the columns are as declared"
    return _measured(
        "schema_as_declared",
        said,
        SchemaDifferences(),
        Bounds(high=0),
        None,
        on_failure,
        options,
    )


def fresh(
    *,
    within: timedelta,
    warn_after: timedelta | None = None,
    on_failure: OnFailure = "warn",
    **options: object,
) -> Rule:
    """Say that rows were published no longer ago than this; a table that never was is not
    fresh.
    """
    said = f"rows were published within {within}"
    inner = None if warn_after is None else (None, hours(warn_after))
    return _measured(
        "fresh", said, AgeHours(), Bounds(high=hours(within)), inner, on_failure, options
    )


def _measured(
    kind: str,
    said: str,
    measure: Metadata,
    bounds: Bounds,
    warn_outside: Outside | None,
    on_failure: OnFailure,
    options: dict[str, object],
) -> Rule:
    inner = None if warn_outside is None else Bounds(*warn_outside)
    return made(
        kind, (), said, on_failure, options, measure=measure, bounds=bounds, warn_outside=inner
    )
