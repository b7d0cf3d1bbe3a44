"""One-line explanations of errors in table functions: table, function, location and cause."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lakehouse.errors import ComputeFailed, FrameMismatch, LakehouseError
from lakehouse.iceberg.metadata.error_explanations import spark_exit_explanation
from lakehouse.iceberg.metadata.spark_errors import contains_no_rows, is_of_query, one_line
from lakehouse.orchestration.code_locations import place_of_error, place_of_function
from lakehouse.orchestration.run_failures.withheld_values import cause_without_data
from lakehouse.tables.table import IcebergTable


def explained(
    table: IcebergTable,
    compute: Callable[..., Any],
    error: Exception,
    next_command: str = "",
) -> LakehouseError | None:
    """Return the error to show; None if neither the function nor its rows caused it.

    The text is withheld for tables with personal data, since it can contain values.

    :param next_command: the command after the correction; default: the one that publishes.
    """
    if isinstance(error, FrameMismatch):
        return FrameMismatch(
            f"{error} It is returned by {described(compute, place_of_function(compute))}."
        )
    command = next_command or f"lakehouse retry {table.name}"
    if isinstance(error, ComputeFailed) and not error.next_step:
        step = f"Correct the query, and run `{command}`."
        return ComputeFailed(str(error), next_step=step)
    if isinstance(error, LakehouseError) or spark_exit_explanation(error):
        return None
    at = place_of_error(compute, error)
    if at is None and not is_of_query(error):
        return None
    where = described(compute, at or place_of_function(compute))
    failed = (
        f"{table.name}: {where} failed"
        if at
        else f"{table.name}: the rows of {where} cannot be computed, or a rule evaluated on them"
    )
    what = "function" if at else "function or the rule"
    return ComputeFailed(
        f"{failed}: {_cause(table, error)}",
        next_step=f"Correct the {what}, and run `{command}`.",
    )


@contextmanager
def in_one_line(
    table: IcebergTable, compute: Callable[..., Any], next_command: str = ""
) -> Iterator[None]:
    """Replace an error of a table function with a one-line error, without Spark's stack trace.

    :param next_command: see `explained`.
    """
    try:
        yield
    except Exception as error:
        explanation = explained(table, compute, error, next_command)
        if explanation is None:
            raise
        # Keep the traceback of Python errors unless it can contain personal values.
        is_hidden = is_of_query(error) or isinstance(error, LakehouseError)
        is_open = not (is_hidden or table.has_personal_data)
        raise explanation from (error if is_open else None)


def described(compute: Callable[..., Any], place: str) -> str:
    """Return the name and location of a function: `fruits (lakehouse/assets/fruits.py:44)`."""
    name = getattr(compute, "__name__", type(compute).__name__)
    return f"{name} ({place})" if place else name


def _cause(table: IcebergTable, error: Exception) -> str:
    if table.has_personal_data and not contains_no_rows(error):
        message = cause_without_data(error)
    elif is_of_query(error):
        message = one_line(error)
    else:
        text = " ".join(str(error).split())
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{message.rstrip('.')}."
