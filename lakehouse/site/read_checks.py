"""What came of the checks last, as Dagster remembers it: counts, and no row that failed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.iceberg.metadata.time_series import Series
from lakehouse.orchestration.asset_checks import is_of_quarantine
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import check_summaries
from lakehouse.orchestration.metadata_keys import CheckMetadata, plain_values
from lakehouse.site.facts import CheckFacts, Outcome
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


def read_checks(
    graph: "AssetGraph",
    instance: dg.DagsterInstance | None,
    declared: Mapping[str, IcebergTable],
) -> dict[str, list[CheckFacts]]:
    """Return the checks by table, in the order of their names, and what came of each last.

    :param instance: where they are remembered; None before the first run.
    """
    keys = sorted(graph.asset_check_keys)
    summaries = check_summaries(instance, keys) if instance else {}
    checks: dict[str, list[CheckFacts]] = {}
    for key in keys:
        spec, name = graph.get_check_spec(key), table_name(key.asset_key)
        facts = CheckFacts(key.name, spec.description or "", on_failure(spec.metadata))
        summary = summaries.get(key)
        last = summary.last_completed_check_execution_record if summary else None
        if last is not None:
            facts = _with_result(facts, declared.get(name), last)
        checks.setdefault(name, []).append(facts)
    return checks


def on_failure(metadata: Mapping[str, Any]) -> str:
    """Return what a check says happens where it does not hold; empty where it says nothing."""
    return str(plain_values(metadata).get("on_failure", ""))


def with_shares(
    checks: Iterable[CheckFacts], shares: Mapping[str, Series]
) -> tuple[CheckFacts, ...]:
    """Return checks with the shares of rows that failed them over time."""
    return tuple(replace(check, failed_shares=shares.get(check.name, ())) for check in checks)


def _with_result(facts: CheckFacts, table: IcebergTable | None, last: Any) -> CheckFacts:
    evaluation: dg.AssetCheckEvaluation | None = last.evaluation
    at = datetime.fromtimestamp(last.create_timestamp, UTC)
    if evaluation is None:
        return replace(facts, outcome="failed", at=at)
    figures = CheckMetadata.from_metadata(evaluation.metadata)
    return replace(
        facts,
        outcome=_outcome(table, evaluation, last.run_id),
        at=at,
        failed_rows=figures.failed_rows,
        total_rows=figures.total_rows,
        value=figures.value,
    )


def _outcome(
    table: IcebergTable | None, evaluation: dg.AssetCheckEvaluation, run_id: str
) -> Outcome:
    if evaluation.passed:
        return "passed"
    if is_of_quarantine(table, evaluation, run_id):
        # It says of rows that were refused, and holds of those that readers see.
        return "quarantined"
    return "warned" if evaluation.severity == dg.AssetCheckSeverity.WARN else "failed"
