"""What Dagster shows of a step of upkeep: an observation of the table, with what was promised
and what came of it as numbers that plot.
"""

from typing import Any

import dagster as dg

from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.maintenance.upkeep_plan import PlannedStep
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.upkeep_results import PREFIX, metadata_of


def observation_of(step: PlannedStep, result: StepResult) -> dg.AssetObservation:
    """Return what is shown of a step."""
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
    """Return a step and what came of it in one line, as people read it."""
    parts = [f"{result.step} {result.outcome}"]
    figures = result.figures
    if "files_before" in figures:
        parts.append(f"{figures['files_before']:.0f} to {figures['files_after']:.0f} files")
    if "manifests_before" in figures:
        before, after = figures["manifests_before"], figures["manifests_after"]
        parts.append(f"{before:.0f} to {after:.0f} manifests")
    for name, noun in _COUNTED.items():
        if figures.get(name):
            parts.append(f"{figures[name]:.0f} {noun}")
    text = ", ".join(parts)
    return f"{text}: {result.reason}" if result.reason else text


_COUNTED = {
    "expired_snapshots": "snapshots expired",
    "dropped_branches": "branches dropped",
    "removed_files": "files removed",
}
