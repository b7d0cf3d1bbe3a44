"""Errors of table functions and blocked writes as one-line explanations."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import dagster as dg

from lakehouse.errors import ComputeFailed, FrameMismatch, LakehouseError
from lakehouse.iceberg.frames.spark_errors import (
    contains_no_rows,
    is_of_query,
    one_line,
    spark_exit_explanation,
)
from lakehouse.iceberg.values.write_result import Refused, RuleResult
from lakehouse.orchestration.functions.function_code import place_of_error, place_of_function
from lakehouse.orchestration.metadata_keys import BlockedMetadata
from lakehouse.orchestration.withheld_values import cause_without_data
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.upkeep import duration_text

OWN_ERROR = "lakehouse.errors."
"""Prefix of the recorded message of an error that this package raised."""


def causes(error: Any) -> Iterator[Any]:
    """Yield an error and its causes, the root cause last; nothing if it was not recorded."""
    while error is not None:
        yield error
        error = error.cause


def known_cause(error: Any) -> Any:
    """Return the innermost cause that this package raised, or else the root cause."""
    chain = list(causes(error))
    own = [cause for cause in chain if cause.message.startswith(OWN_ERROR)]
    return (own or chain)[-1]


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


def blocked_failure(
    outcome: Refused,
    run_id: str,
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> dg.Failure:
    """Return the failure of a blocked write; not retried, since the result would be the same.

    :param metadata: additional metadata of the run.
    """
    reasons = "; ".join(_reason(result) for result in outcome.reasons)
    at = outcome.snapshot_id
    main = f"is as it was, at snapshot {at}" if at else "is empty, as it was"
    sources = sorted({pin.table for pin in outcome.pins.values()})
    # Rules on metadata or merge rows can fail before anything is written.
    candidate, publish = "nothing was written that could be looked at", ""
    if outcome.branch:
        kept_for = duration_text(outcome.kept_for)
        candidate = f"the blocked rows are kept on its branch {outcome.branch} for {kept_for}"
        command = f"lakehouse publish {outcome.table} --run {run_id[:8]} --why …"
        publish = f"; or publish them all the same with `{command}`" if run_id else ""
    return dg.Failure(
        f"{outcome.table} was not published: {reasons}. The table {main}; {candidate}."
        f" Correct the rule, or these rows in {' and '.join(sources) or 'what the asset computes'},"
        f" and run `lakehouse retry {outcome.table}`{publish}.",
        metadata={
            **BlockedMetadata(
                branch=outcome.branch,
                candidate_snapshot_id=outcome.candidate_snapshot_id,
                snapshot_id=outcome.snapshot_id,
                failed_rules=", ".join(result.rule.name for result in outcome.reasons),
            ).to_metadata(),
            **metadata,
        },
        allow_retries=False,
    )


def _reason(result: RuleResult) -> str:
    shown = ""
    if result.sample:
        row = json.dumps(dict(result.sample[0]), default=str, ensure_ascii=False)
        shown = f", such as {row}"
    broken = "is broken by" if result.rule.bounds is None else "does not hold: found"
    return (
        f"rule {result.rule.name} ({result.rule.description}) {broken} {result.summary}{shown}"
    )
