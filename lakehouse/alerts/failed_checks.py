"""Failed and passed checks, from the evaluations that Dagster records."""

from collections.abc import Iterator
from datetime import UTC, datetime
from shlex import quote

import dagster as dg
from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.alerts.incidents import Firing, Resolved
from lakehouse.alerts.monitor_context import MonitorContext, describe_rows
from lakehouse.alerts.mutes import mute_command
from lakehouse.orchestration.asset_checks import is_of_quarantine
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import check_executions
from lakehouse.orchestration.metadata_keys import CheckMetadata


def check_facts(
    context: MonitorContext, entry: dg.EventLogEntry
) -> Iterator[Firing | Resolved]:
    """Yield the incident of an evaluation, or its resolution.

    Blocked candidates and quarantined rows are other incidents.
    """
    evaluation = entry.get_dagster_event().asset_check_evaluation_data
    metadata, key = CheckMetadata.from_metadata(evaluation.metadata), evaluation.asset_check_key
    table = table_name(key.asset_key)
    if key not in context.graph.asset_check_keys or metadata.evaluated == "candidate":
        return
    if is_of_quarantine(context.declared.get(table), evaluation, entry.run_id):
        return
    at = datetime.fromtimestamp(entry.timestamp, UTC)
    if evaluation.passed:
        how = f"Check {key.name} passed in run {entry.run_id[:8]}."
        yield Resolved(incident_key(key), at, how, frozenset(metadata.partitions))
    else:
        yield _firing(context, evaluation, metadata, at, entry.run_id)


def incident_key(key: AssetCheckKey) -> str:
    """Return the key of a check's incident."""
    return f"check {table_name(key.asset_key)} {key.name}"


def last_evaluation(
    instance: dg.DagsterInstance, key: AssetCheckKey
) -> AssetCheckEvaluation | None:
    """Return the last evaluation of a check; None if the last one was only planned."""
    for record in check_executions(instance, key, limit=1):
        event = record.event.dagster_event if record.event else None
        if event and event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            evaluation: AssetCheckEvaluation = event.asset_check_evaluation_data
            return evaluation
    return None


def describe_failure(evaluation: AssetCheckEvaluation) -> str:
    """Describe the result of a check, with the share of failed rows."""
    text = f"{evaluation.check_name}: {evaluation.description or 'it did not pass.'}"
    metadata = CheckMetadata.from_metadata(evaluation.metadata)
    if not metadata.failed_rows or not metadata.total_rows:
        return text
    tolerated = f"; {metadata.threshold:.2%} are tolerated" if metadata.threshold else ""
    return f"{text} That is {metadata.failed_rows / metadata.total_rows:.2%}{tolerated}."


def _firing(
    context: MonitorContext,
    evaluation: AssetCheckEvaluation,
    metadata: CheckMetadata,
    at: datetime,
    run_id: str,
) -> Firing:
    key, table = evaluation.asset_check_key, table_name(evaluation.asset_key)
    is_error = evaluation.severity == dg.AssetCheckSeverity.ERROR
    commands = list(_query_commands(context, table, key.name))
    if is_error:
        commands += context.reject_commands(table, metadata.sample)
        commands += _repair_commands(table, sorted(metadata.partitions))
    else:
        commands += [f"lakehouse check {table}", mute_command(table)]
    return context.firing(
        incident_key(key),
        "check",
        at,
        f"{table}: check {key.name} {'failed' if is_error else 'warns'}",
        lines=(
            describe_failure(evaluation),
            *describe_rows(metadata.sample, context.masked_columns(table)),
        ),
        commands=commands,
        severity="error" if is_error else "warn",
        table=table,
        run_id=run_id,
        affected_partitions=frozenset(metadata.partitions),
    )


def _query_commands(context: MonitorContext, table: str, check: str) -> Iterator[str]:
    declared = context.declared.get(table)
    for rule in declared.row_rules if declared else ():
        predicate = declared.broken_by(rule) if declared and rule.name == check else "false"
        if predicate != "false":
            yield f"lakehouse sql {quote(f'SELECT * FROM {table} WHERE {predicate} LIMIT 20')}"


def _repair_commands(table: str, partitions: list[str]) -> Iterator[str]:
    if partitions:
        yield f"lakehouse backfill {table} --from {partitions[0]} --to {partitions[-1]}"
    else:
        yield f"lakehouse check {table}"
    yield f"lakehouse history {table}"
