"""The result of one upkeep step, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

StepName = Literal[
    "compact",
    "drop_branches",
    "expire_snapshots",
    "rewrite_manifests",
    "remove_orphans",
    "rewrite_erased_files",
    "clean_manifests",
    "remove_old_metadata",
    "remove_unnamed_files",
]
"""The steps, in the order in which they are safe: branches go first, since they keep snapshots
from expiry. The last four are of an erasure.
"""
StepOutcome = Literal["done", "skipped", "partial", "failed"]


@dataclass(frozen=True)
class StepResult:
    """The verified result of one step on one table.

    - `reason`: why it was skipped, is partial or failed; for a completed step, what limited it.
    - `step_metrics`: its metrics by name: `files_before`, `files_after`, `rewritten_bytes`,
      `rewritten_files`, `added_bytes`, `removed_files`, `removed_bytes`, `expired_snapshots`,
      `dropped_branches`, `manifests_before`, `manifests_after`, `cleaned_refs`, `due_at` (in
      seconds since 1970), `seconds`.
    - `remaining`: paths or branches that could not be deleted.
    - `had_conflict`: whether another commit stopped it; a partial step did some work before.
    - `error`: type of a foreign error that stopped it; its text, in `reason`, can contain data.
    """

    table: str
    step: StepName
    outcome: StepOutcome
    reason: str = ""
    step_metrics: Mapping[str, float] = field(default_factory=dict)
    remaining: tuple[str, ...] = ()
    had_conflict: bool = False
    error: str = ""
