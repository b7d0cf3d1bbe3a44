"""What came of one step of upkeep; a value without behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

StepName = Literal[
    "compact",
    "drop_branches",
    "expire_snapshots",
    "rewrite_manifests",
    "remove_orphans",
    "remove_lost_metadata",
    "compute_statistics",
    "rewrite_erased_files",
    "clean_manifests",
    "remove_statistics",
    "remove_old_metadata",
    "remove_unnamed_files",
]
"""The steps, in the order in which they are safe: branches go first, since they keep snapshots
from expiry. The last five are of an erasure.
"""
StepOutcome = Literal["done", "skipped", "partial", "failed"]


@dataclass(frozen=True)
class StepResult:
    """What one step did to one table, as it was verified afterwards.

    `reason` says why it was skipped, is partial or failed; where it is done, what held it back,
    if anything did.
    `figures` are what it changed, by name: `files_before`, `files_after`, `rewritten_bytes`,
    `rewritten_files`, `added_bytes`, `removed_files`, `removed_bytes`, `expired_snapshots`,
    `dropped_branches`, `manifests_before`, `manifests_after`, `cleaned_refs`, `due_at` (in
    seconds since 1970), `seconds`.
    `remaining` are paths or branches that were to be deleted and are still there.
    """

    table: str
    step: StepName
    outcome: StepOutcome
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    remaining: tuple[str, ...] = ()
    lost_race: bool = False
    """Whether it was skipped since a writer came first; else it looked, and found nothing to
    do. Of one that is partial, a writer came after some of it.
    """
    error: str = ""
    """Kind of the error that ended it where others than the lakehouse raised that; its text,
    which is `reason`, may quote data then.
    """
