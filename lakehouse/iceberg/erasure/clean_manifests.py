"""Manifests that say something of removed files are written again without it: of main, and of
each branch and tag, which no procedure of Iceberg does.
"""

from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.erasure.borrowed_properties import borrowed_properties, give_back
from lakehouse.iceberg.erasure.commit_files import (
    FileChange,
    commit_files,
    has_removed_entries,
)
from lakehouse.iceberg.erasure.erasure_commits import erasure_properties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, history_of
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.iceberg.upkeep.lost_race import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.rewrite_manifests import TARGET_PROPERTY
from lakehouse.iceberg.upkeep.rewrite_procedures import rewrite_manifests_of_spec
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

_STEP: StepName = "clean_manifests"


def clean_manifests(engine: Engine, table: str, request: str) -> StepResult:
    """Write the manifests of each branch and tag again that say something of removed files; a
    tag then points at a snapshot of its own with the same rows.

    :returns: `partial` with the branches and tags whose manifests still do: of format 3, which
        Spark alone writes, those of main can be cleaned and of no other.
    """
    return run_step(table, _STEP, lambda: _clean(engine, table, request))


def _clean(engine: Engine, table: str, request: str) -> StepResult:
    with free_lock(engine, table):
        give_back(engine, table)
        unclean = _unclean(engine, table)
        if not unclean:
            return skipped(table, _STEP, "no manifest says anything of removed files")
        for ref in unclean:
            if engine.catalog.load(table).format_version in WRITABLE_FORMATS:
                _clean_ref(engine, table, ref, request)
            elif ref == MAIN:
                _clean_main_by_spark(engine, table)
        remaining = tuple(_unclean(engine, table))
        figures = {"cleaned_refs": len(unclean) - len(remaining)}
        if remaining:
            reason = f"manifests of {', '.join(remaining)} still tell of removed files"
            return StepResult(table, _STEP, "partial", reason, figures, remaining)
        return StepResult(table, _STEP, "done", "", figures)


def _unclean(engine: Engine, table: str) -> list[str]:
    loaded = engine.catalog.load(table)
    return [
        name
        for name, ref in sorted(loaded.metadata.refs.items())
        if not is_audit(name) and has_removed_entries(loaded, ref.snapshot_id)
    ]


def _clean_ref(engine: Engine, table: str, ref: str, request: str) -> None:
    loaded = engine.catalog.load(table)
    commit_files(
        loaded,
        ref,
        FileChange(),
        erasure_properties(history_of(table, loaded), ref, request, 0),
        operation="replace",
        rewrites_manifests=True,
    )


def _clean_main_by_spark(engine: Engine, table: str) -> None:
    """Rewrite the manifests of each partition spec.

    The procedure leaves one that is alone as it is, unless the target size has it made into
    more than one.
    """
    loaded = engine.catalog.load(table)
    manifests = read_manifests(loaded)
    for spec_id in sorted({manifest.partition_spec_id for manifest in manifests}):
        sizes = [
            manifest.manifest_length
            for manifest in manifests
            if manifest.partition_spec_id == spec_id
        ]
        target_bytes = str(max(1, min(sizes) // 2))
        with borrowed_properties(engine, table, {TARGET_PROPERTY: target_bytes}):
            rewrite_manifests_of_spec(engine, table, spec_id)
