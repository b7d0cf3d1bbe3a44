"""Merge small manifests, so that planning a scan opens fewer of them."""

from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.readers_view import changed_row_counts, view_of
from lakehouse.iceberg.upkeep.rewrite_procedures import rewrite_manifests_of_spec
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "rewrite_manifests"
TARGET_PROPERTY = "commit.manifest.target-size-bytes"
_TARGET_BYTES = 8 * 1024**2
"""Iceberg's default of that property."""


def rewrite_manifests(engine: Engine, table: str) -> StepResult:
    """Rewrite the manifests of each partition spec, if that reduces their number."""
    return run_step(table, _STEP, lambda: _rewrite(engine, table))


def _rewrite(engine: Engine, table: str) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        specs = specs_with_many_manifests(loaded)
        if not specs:
            return skipped(table, _STEP, "no partition spec has more manifests than it needs")
        before, history = view_of(engine, table)
        for spec_id in specs:
            rewrite_manifests_of_spec(engine, table, spec_id)
        carry_watermarks(engine, table)
        after, _ = view_of(engine, table)
        changes = before.changes(after) + changed_row_counts(engine, table, history)
        step_metrics = {
            "manifests_before": len(read_manifests(loaded)),
            "manifests_after": len(read_manifests(engine.catalog.load(table))),
        }
        if changes:
            return StepResult(table, _STEP, "failed", "; ".join(changes), step_metrics)
        return StepResult(table, _STEP, "done", "", step_metrics)


def specs_with_many_manifests(table: "Table") -> list[int]:
    """Return the partition specs with more data or delete manifests than their size requires."""
    counts: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for manifest in read_manifests(table):
        kind = (manifest.partition_spec_id, int(manifest.content))
        counts[kind] += 1
        sizes[kind] += manifest.manifest_length
    target_bytes = int(table.properties.get(TARGET_PROPERTY, _TARGET_BYTES))
    many = {
        kind[0] for kind, count in counts.items() if count > ceil(sizes[kind] / target_bytes)
    }
    return sorted(many)
