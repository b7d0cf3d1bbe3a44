"""Dagster observations of upkeep steps, with estimates and results as plotted numbers."""

from typing import Any

import dagster as dg

from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.maintenance.upkeep_plan import PlannedStep
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.upkeep_results import PREFIX, metadata_of


def observation_of(step: PlannedStep, result: StepResult) -> dg.AssetObservation:
    """Return the observation of a step."""
    metadata: dict[str, Any] = {
        **metadata_of(result),
        f"{PREFIX}why": step.reason,
        f"{PREFIX}promised_fewer_files": step.gain.fewer_files,
        f"{PREFIX}promised_cost_bytes": step.cost_bytes,
    }
    return dg.AssetObservation(
        asset_key(result.table), description=result_text(result), metadata=metadata
    )


def result_text(result: StepResult) -> str:
    """Return a one-line summary of a step."""
    parts = [f"{result.step} {result.outcome}"]
    metrics = result.step_metrics
    if "files_before" in metrics:
        parts.append(f"{metrics['files_before']:.0f} to {metrics['files_after']:.0f} files")
    if "manifests_before" in metrics:
        before, after = metrics["manifests_before"], metrics["manifests_after"]
        parts.append(f"{before:.0f} to {after:.0f} manifests")
    for name, noun in _COUNT_NOUNS.items():
        if metrics.get(name):
            parts.append(f"{metrics[name]:.0f} {noun}")
    text = ", ".join(parts)
    return f"{text}: {result.reason}" if result.reason else text


_COUNT_NOUNS = {
    "expired_snapshots": "snapshots expired",
    "dropped_branches": "branches dropped",
    "removed_files": "files removed",
}
