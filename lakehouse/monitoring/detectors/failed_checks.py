"""Failed checks: whatever evaluated them, a run, a person alone, or something outside of runs.

What a rule said of a refused candidate is left out: that the table is held back is told
instead, see `runs`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any, TypeGuard

import dagster as dg
from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.monitoring.detectors.sources import MonitorContext, shown_rows
from lakehouse.monitoring.incidents import Firing, Observed, Resolved, moment_text
from lakehouse.orchestration.asset_checks import is_of_quarantine
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.metadata_keys import CheckMetadata

CURSOR = "checks"
_BEGIN = ""
"""Instead of a check, when was first looked: since then counts all that a check found."""
_LOOKED_BACK = 50
_EVALUATED = ("SUCCEEDED", "FAILED")


def detect_failed_checks(context: MonitorContext, cursors: Mapping[str, Any]) -> Observed:
    """Return what checks found since the last look; at the first look, what each found last."""
    is_first = CURSOR not in cursors
    seen: dict[str, float] = dict(cursors.get(CURSOR, {_BEGIN: context.now.timestamp()}))
    facts: list[Firing | Resolved] = []
    for key, last in _latest(context).items():
        name = key_of(key)
        since = 0.0 if is_first else seen.get(name, seen[_BEGIN])
        # One that is only planned may stand before an evaluation that nobody saw yet.
        if last.status.value in _EVALUATED and last.event and last.event.timestamp <= since:
            continue
        events = _events(context, key)
        news = (
            events[:1] if is_first else [event for event in events if event.timestamp > since]
        )
        facts += (fact for event in news if (fact := _fact(context, key, event, events)))
        seen |= {name: max(event.timestamp for event in news)} if news else {}
    return Observed(tuple(facts), cursors={CURSOR: seen})


def key_of(key: AssetCheckKey) -> str:
    """Return what a check is known by."""
    return f"check {table_name(key.asset_key)} {key.name}"


def figures_of(evaluation: AssetCheckEvaluation) -> CheckMetadata:
    """Return what a check evaluated and counted; personal values are masked in its sample."""
    return CheckMetadata.from_metadata(evaluation.metadata)


def by_how_much(evaluation: AssetCheckEvaluation) -> str:
    """Say what a check found, and the fraction of rows where it counted some."""
    said = f"{evaluation.check_name}: {evaluation.description or 'it did not pass.'}"
    figures = figures_of(evaluation)
    if not figures.failed_rows or not figures.total_rows:
        return said
    tolerated = f"; {figures.threshold:.2%} are tolerated" if figures.threshold else ""
    return f"{said} That is {figures.failed_rows / figures.total_rows:.2%}{tolerated}."


def _brief(evaluation: AssetCheckEvaluation) -> str:
    figures = figures_of(evaluation)
    if not figures.failed_rows or figures.total_rows is None:
        return ""
    return f"{figures.failed_rows:,} of {figures.total_rows:,} rows"


def in_clear(evaluations: Iterable[AssetCheckEvaluation]) -> tuple[str, ...]:
    """Return the commands that show the rows of samples in clear."""
    commands = (figures_of(evaluation).rows_in_clear for evaluation in evaluations)
    return tuple(dict.fromkeys(command for command in commands if command))


def _latest(context: MonitorContext) -> Mapping[AssetCheckKey, Any]:
    """Return the last execution of each check: one query for all, where the summary is one for
    each.
    """
    keys = list(context.graph.asset_check_keys)
    found = context.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {
        key: record for key, record in found.items() if key in context.graph.asset_check_keys
    }


def _events(context: MonitorContext, key: AssetCheckKey) -> list[Any]:
    """Return the last evaluations of a check, the newest first."""
    records = context.instance.event_log_storage.get_asset_check_execution_history(
        key, limit=_LOOKED_BACK
    )
    events = (record.event for record in records if record.event is not None)
    return [event for event in events if is_evaluation(event.dagster_event)]


def is_evaluation(event: dg.DagsterEvent | None) -> TypeGuard[dg.DagsterEvent]:
    """Whether a check was evaluated there: of one that was planned and never was, the event is
    that of its planning.
    """
    return event is not None and event.event_type_value == "ASSET_CHECK_EVALUATION"


def _fact(
    context: MonitorContext, key: AssetCheckKey, event: Any, events: Sequence[Any]
) -> Firing | Resolved | None:
    evaluation = event.dagster_event.event_specific_data
    figures = figures_of(evaluation)
    if figures.evaluated == "candidate":
        return None
    if is_of_quarantine(
        context.declared.get(table_name(key.asset_key)), evaluation, event.run_id
    ):
        # Told as what stands in the quarantine, see `quarantined`.
        return None
    at = datetime.fromtimestamp(event.timestamp, UTC)
    extent = frozenset(figures.partitions)
    if evaluation.passed:
        links = context.links(run_id=event.run_id or "", table=table_name(key.asset_key))
        by = f" in run {event.run_id[:8]}" if event.run_id else ""
        return Resolved(key_of(key), at, f"Check {key.name} passed{by}.", extent, links)
    earlier = [one for one in events if one.timestamp < event.timestamp]
    return _firing(context, key, evaluation, at, event.run_id or "", extent, earlier)


def _firing(
    context: MonitorContext,
    key: AssetCheckKey,
    evaluation: AssetCheckEvaluation,
    at: datetime,
    run_id: str,
    extent: frozenset[str],
    earlier: Sequence[Any],
) -> Firing:
    table = table_name(key.asset_key)
    declared = context.declared.get(table)
    is_error = evaluation.severity == dg.AssetCheckSeverity.ERROR
    personal = declared.masked_columns if declared else frozenset()
    figures = figures_of(evaluation)
    rows = figures.sample
    return Firing(
        key_of(key),
        "check",
        at,
        "error" if is_error else "warn",
        f"{table}: check {key.name} {'failed' if is_error else 'warns'}",
        (
            by_how_much(evaluation),
            _good(earlier),
            *shown_rows(rows, personal),
            *context.whose(table),
        ),
        context.links(run_id=run_id, table=table),
        (
            *in_clear([evaluation]),
            *_ways_on(context, table, key.name, extent, rows, is_error=is_error),
        ),
        table,
        context.owner(table),
        run_id,
        extent,
        brief=_brief(evaluation),
        state=str(figures.snapshot_id or ""),
    )


def _good(earlier: Sequence[Any]) -> str:
    """Say when a check passed last, and on which snapshot."""
    for event in earlier:
        evaluation = event.dagster_event.event_specific_data
        figures = figures_of(evaluation)
        if evaluation.passed and figures.evaluated != "candidate":
            at = datetime.fromtimestamp(event.timestamp, UTC)
            where = f", on snapshot {figures.snapshot_id}" if figures.snapshot_id else ""
            return f"It passed last at {moment_text(at)}{where}."
    return (
        f"It passed in none of its last {len(earlier)} evaluations."
        if earlier
        else "It was never evaluated before."
    )


def _ways_on(
    context: MonitorContext,
    table: str,
    check: str,
    extent: frozenset[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    is_error: bool,
) -> Iterator[str]:
    """Yield what shows the rows, and what mends it; that a check is made once more mends
    nothing.
    """
    declared = context.declared.get(table)
    rule = (
        next((one for one in declared.row_rules if one.name == check), None)
        if declared
        else None
    )
    broken_by = declared.broken_by(rule) if declared and rule else "false"
    if broken_by != "false":
        yield f"lakehouse sql {quote(f'SELECT * FROM {table} WHERE {broken_by} LIMIT 20')}"
    if not is_error:
        yield f"lakehouse check {table}"
        yield f"lakehouse mute {table} --until 2h"
        return
    yield from context.rejects(table, rows)
    if extent:
        yield f"lakehouse backfill {table} --from {min(extent)} --to {max(extent)}"
    else:
        yield f"lakehouse retry {table}"
    yield f"lakehouse history {table}"
