"""Results of upkeep steps as Dagster observations, for the CLI and alerts."""

from collections.abc import Mapping
from typing import Any

from lakehouse.iceberg.upkeep.step_result import StepResult

JOB = "maintain_tables"
PREFIX = "upkeep/"


def metadata_of(result: StepResult) -> dict[str, Any]:
    """Return a result as observation metadata."""
    metadata: dict[str, Any] = {
        f"{PREFIX}step": result.step,
        f"{PREFIX}outcome": result.outcome,
        f"{PREFIX}reason": result.reason,
    }
    for name, value in result.step_metrics.items():
        metadata[f"{PREFIX}{name}"] = float(value)
    if result.remaining:
        metadata[f"{PREFIX}remaining"] = list(result.remaining)
    if result.had_conflict:
        metadata[f"{PREFIX}lost_race"] = True
    if result.error:
        metadata[f"{PREFIX}error"] = result.error
    return metadata


def step_result_of(table: str, metadata: Mapping[str, Any]) -> StepResult | None:
    """Return the result of an observation; None for other observations."""
    if f"{PREFIX}outcome" not in metadata:
        return None
    step_metrics = {}
    for name, value in metadata.items():
        if name.startswith(PREFIX) and isinstance(value, float):
            step_metrics[name.removeprefix(PREFIX)] = value
    return StepResult(
        table,
        metadata[f"{PREFIX}step"],
        metadata[f"{PREFIX}outcome"],
        metadata[f"{PREFIX}reason"],
        step_metrics,
        tuple(metadata.get(f"{PREFIX}remaining", ())),
        metadata.get(f"{PREFIX}lost_race", False),
        metadata.get(f"{PREFIX}error", ""),
    )
