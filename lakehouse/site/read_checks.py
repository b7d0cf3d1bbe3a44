"""The last result of each check from Dagster's storage, without failing rows."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

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
    """Return the checks and their last results by table, sorted by name.

    :param instance: None before the first run.
    """
    keys = sorted(graph.asset_check_keys)
    summaries = check_summaries(instance, keys) if instance else {}
    checks: dict[str, list[CheckFacts]] = {}
    for key in keys:
        spec, table = graph.get_check_spec(key), table_name(key.asset_key)
        summary = summaries.get(key)
        last = summary.last_completed_check_execution_record if summary else None
        evaluation = last.evaluation if last else None
        counts = CheckMetadata.from_metadata(evaluation.metadata if evaluation else {})
        outcome: Outcome = "failed" if last else "not run"
        if last and evaluation:
            outcome = _outcome(declared.get(table), evaluation, last.run_id)
        check = CheckFacts(
            key.name,
            spec.description or "",
            str(plain_values(spec.metadata).get("on_failure", "")),
            outcome,
            datetime.fromtimestamp(last.create_timestamp, UTC) if last else None,
            counts.failed_rows,
            counts.total_rows,
            counts.value,
        )
        checks.setdefault(table, []).append(check)
    return checks


def _outcome(
    table: IcebergTable | None, evaluation: dg.AssetCheckEvaluation, run_id: str
) -> Outcome:
    if evaluation.passed:
        return "passed"
    if is_of_quarantine(table, evaluation, run_id):
        # The published rows pass; the failing ones are in the quarantine.
        return "quarantined"
    return "warned" if evaluation.severity == dg.AssetCheckSeverity.WARN else "failed"
