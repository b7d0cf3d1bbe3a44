"""Merges small manifests, so that planning a scan opens fewer of them."""

from collections import Counter
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.health_metrics import MANIFEST_BYTES
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    TARGET_PROPERTY,
    rewrite_manifests_of_spec,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.storage.byte_sizes import size_text
from lakehouse.upkeep.upkeep_plan import PlannedStep, StepInputs, count_text

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "rewrite_manifests"
MIN_NEEDLESS_MANIFESTS = 20
"""Minimum number of excess manifests: each read opens all manifests."""


def plan_manifests(inputs: StepInputs) -> PlannedStep:
    """Plan the rewrite of manifests: due if there are many more than their size requires."""
    health = inputs.health
    needed = health.needed_manifests
    last = inputs.last_evaluated(_STEP)
    if last:
        # Do not retry what the last rewrite could not merge.
        needed = max(needed, int(last.step_metrics.get("manifests_after", 0)))
    limit = needed + MIN_NEEDLESS_MANIFESTS
    reason = (
        f"{count_text(health.manifests, 'manifest')} of {size_text(health.manifest_bytes)} for"
        f" {count_text(health.data_files, 'data file')} ({limit} or more)"
    )
    return inputs.planned(
        _STEP,
        reason,
        partial(rewrite_manifests, table=health.table),
        is_due=health.manifests >= limit,
        fewer_manifests=health.manifests - needed,
        cost_bytes=2 * health.manifest_bytes,
    )


def rewrite_manifests(engine: Engine, table: str) -> StepResult:
    """Rewrite the manifests of each partition spec, if that reduces their number."""
    return run_step(table, _STEP, lambda: _rewrite(engine, table))


def _rewrite(engine: Engine, table: str) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        specs = _specs_with_many_manifests(loaded)
        if not specs:
            return skipped(table, _STEP, "no partition spec has more manifests than it needs")
        for spec_id in specs:
            rewrite_manifests_of_spec(engine, table, spec_id)
        carry_watermarks(engine, table)
    step_metrics = {
        "manifests_before": len(read_manifests(loaded)),
        "manifests_after": len(read_manifests(engine.catalog.load(table))),
    }
    return StepResult(table, _STEP, "done", "", step_metrics)


def _specs_with_many_manifests(table: "Table") -> list[int]:
    """Return the partition specs with more data or delete manifests than their size requires."""
    counts: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for manifest in read_manifests(table):
        kind = (manifest.partition_spec_id, int(manifest.content))
        counts[kind] += 1
        sizes[kind] += manifest.manifest_length
    target_bytes = int(table.properties.get(TARGET_PROPERTY, MANIFEST_BYTES))
    many = {kind[0] for kind in counts if counts[kind] > ceil(sizes[kind] / target_bytes)}
    return sorted(many)
