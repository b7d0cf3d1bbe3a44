"""Results of upkeep steps as Dagster observations, for the CLI and alerts."""

from collections.abc import Mapping
from typing import Any

from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.storage.json_files import type_adapter

JOB = "maintain_tables"
PREFIX = "upkeep/"
_RESULT = f"{PREFIX}result"


def metadata_of(result: StepResult) -> dict[str, Any]:
    """Return a result as observation metadata: as JSON, and its metrics, which Dagster plots."""
    metrics = {f"{PREFIX}{name}": float(value) for name, value in result.step_metrics.items()}
    return {_RESULT: type_adapter(StepResult).dump_json(result).decode(), **metrics}


def step_result_of(metadata: Mapping[str, Any]) -> StepResult | None:
    """Return the result of an observation; None for other observations."""
    text = metadata.get(_RESULT)
    result: StepResult | None = type_adapter(StepResult).validate_json(text) if text else None
    return result
