"""Compaction: rewrites small files, and files with deleted rows, to the target size.

It is due by thresholds per partition; then Iceberg selects the files of the entire table. Each
chunk is rewritten under the table's lock, so that a writer on this host waits for at most one.
Writers on other hosts take precedence: Iceberg rejects a rewrite whose files they changed.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import ceil

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.health_metrics import PartitionHealth, TableHealth
from lakehouse.iceberg.metadata.snapshots import (
    History,
    history_of,
    read_history,
)
from lakehouse.iceberg.metadata.type_conversion import column_type
from lakehouse.iceberg.upkeep.free_lock import (
    CHUNK_BYTES,
    CommitConflict,
    free_lock,
    run_step,
    skipped,
)
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    DELETED_ROWS_OPTIONS,
    Rewritten,
    rewrite_data_files,
    rewrite_position_deletes,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.quoting import dotted
from lakehouse.upkeep.upkeep_plan import (
    PlannedStep,
    StepInputs,
    count_text,
    next_day,
)

_STEP: StepName = "compact"
MIN_FILES = 5
"""Minimum number of small or delete files for a partition with ongoing writes: Iceberg's
`min-input-files` of rewrite_data_files. With fewer, each new file would cause a rewrite.
"""
MIN_FILES_AT_REST = 2
"""Minimum for a partition without ongoing writes: it is rewritten once."""
AT_REST_AFTER = timedelta(days=1)
MIN_DELETED_SHARE = 0.1
"""Share of deleted rows that justifies a rewrite, independent of the number of delete files."""
HOT_FOR = timedelta(hours=1)
"""A partition with a newer file waits: more files can follow, and its writer could conflict."""
MAX_FILES_WHILE_HOT = 4 * MIN_FILES
"""With this many files it does not wait: constant writes would delay it forever."""
_PAUSE_SECONDS = 0.5
"""Time between chunks in which the lock is free; waiting writers poll every 0.05 s."""


@dataclass(frozen=True)
class Need:
    """A partition that compaction improves, with its small and delete files, and an estimate."""

    partition: PartitionHealth
    min_files: int
    files: int
    fewer_files: int
    cost_bytes: int
    hot_until: datetime | None


def find_needs(health: TableHealth, now: datetime, *, named_by_user: bool) -> list[Need]:
    """Return the partitions that compaction improves, including those that must wait.

    :param named_by_user: a user named this table: two files are sufficient.
    """
    needs = []
    for partition in health.partitions:
        age = now - partition.newest_file_at if partition.newest_file_at else timedelta.max
        is_at_rest = named_by_user or age >= AT_REST_AFTER
        min_files = MIN_FILES_AT_REST if is_at_rest else MIN_FILES
        files = fewer_files = 0
        cost_bytes = 2 * partition.small_bytes
        saved_files = partition.fewer_files(health.target_bytes)
        if partition.small_files >= min_files and saved_files >= min_files - 1:
            files, fewer_files = partition.small_files, saved_files
        deleted_share = partition.deleted_rows / partition.rows if partition.rows else 0.0
        if partition.delete_files >= min_files or deleted_share >= MIN_DELETED_SHARE:
            files += partition.delete_files
            fewer_files += partition.delete_files
            # Metadata does not show which files have deletes, so all files count.
            cost_bytes = 2 * partition.data_bytes + partition.delete_bytes
        if files:
            is_hot = age < HOT_FOR and files < MAX_FILES_WHILE_HOT and not named_by_user
            hot_until = now - age + HOT_FOR if is_hot else None
            needs.append(Need(partition, min_files, files, fewer_files, cost_bytes, hot_until))
    return needs


def saved_files_per_byte(inputs: StepInputs) -> float:
    """Return the files that a compaction saves per byte of its cost."""
    needs = find_needs(inputs.health, inputs.now, named_by_user=inputs.named_by_user)
    cost_bytes = sum(need.cost_bytes for need in needs)
    fewer_files = sum(need.fewer_files for need in needs)
    return fewer_files / max(cost_bytes, 1)


def plan_compaction(inputs: StepInputs) -> PlannedStep:
    """Plan the compaction of a table: due if a partition needs it and was not just written."""
    health, policy = inputs.health, inputs.policy
    needs = find_needs(health, inputs.now, named_by_user=inputs.named_by_user)
    ready = [need for need in needs if need.hot_until is None]
    not_before = min((need.hot_until for need in needs if need.hot_until), default=None)
    reason, is_due = _describe(ready or needs), bool(ready)
    if needs and not ready:
        reason += ": written to within the last hour"
    # Iceberg also selects files of partitions that need not be compacted yet.
    cost_bytes = sum(need.cost_bytes for need in needs)
    max_bytes = None
    if ready:
        if inputs.budget.left_bytes <= 0:
            reason, is_due = f"{reason}: the bytes of today are used up", False
            not_before = next_day(inputs.now)
        elif cost_bytes > inputs.budget.left_bytes:
            max_bytes = inputs.budget.left_bytes
        cost_bytes = inputs.budget.take(cost_bytes)
    work = partial(
        compact,
        table=health.table,
        target_bytes=health.target_bytes,
        min_files=min((need.min_files for need in ready), default=MIN_FILES),
        sort_by=policy.sort_by,
        z_order=policy.z_order,
        max_bytes=max_bytes,
    )
    return inputs.planned(
        _STEP,
        reason,
        work,
        is_due=is_due,
        not_before=not_before,
        partitions=tuple(need.partition.key for need in ready),
        fewer_files=sum(need.fewer_files for need in needs),
        cost_bytes=cost_bytes,
    )


def _describe(needs: Sequence[Need]) -> str:
    if not needs:
        return (
            f"no partition has {MIN_FILES} small or delete files, or {MIN_FILES_AT_REST} and was"
            " not written to for a day"
        )
    files = count_text(sum(need.files for need in needs), "small or delete file")
    return f"{count_text(len(needs), 'partition')} with {files}"


def compact(
    engine: Engine,
    table: str,
    *,
    target_bytes: int,
    min_files: int = MIN_FILES_AT_REST,
    sort_by: Sequence[str] = (),
    z_order: bool = False,
    max_bytes: int | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> StepResult:
    """Rewrite the small files of a table, and those with deleted rows, in files of `target_bytes`.

    :param min_files: minimum number of small files of a partition.
    :param sort_by: columns to sort rows by: in turn, or by z-order with `z_order` if this
        Iceberg supports it; otherwise the result has a reason. By default files are only merged.
    :param max_bytes: ends after the chunk that exceeds these bytes, read and written.
    :param chunk_bytes: how much is rewritten while the lock is held.
    :returns: `skipped` after a conflict or if no files gain by it; `partial` after a conflict
        following some completed chunks.
    """
    options = {"target-file-size-bytes": str(target_bytes), "min-input-files": str(min_files)}
    sort_order, note = _sort_order(engine, table, sort_by, z_order=z_order)
    rewriting = _Rewriting(engine, table, options, sort_order, note)
    return run_step(table, _STEP, lambda: rewriting.run(max_bytes, chunk_bytes))


def _sort_order(
    engine: Engine, table: str, sort_by: Sequence[str], *, z_order: bool
) -> tuple[str, str]:
    """Return the sort order, and why it is not the requested z-order."""
    columns, note = ", ".join(map(dotted, sort_by)), ""
    if z_order:
        schema = engine.catalog.load(table).schema()
        types = {name: str(column_type(schema.find_field(name).field_type)) for name in sort_by}
        note = engine.catalog.iceberg.lacks_z_order_of(types) or ""
    if z_order and not note:
        return f"zorder({columns})", ""
    return columns, f"sorted by columns in turn: {note}" if note else ""


@dataclass(frozen=True)
class _Rewriting:
    """A compaction of one table."""

    engine: Engine
    table: str
    options: dict[str, str]
    sort_order: str
    note: str

    def run(self, max_bytes: int | None, chunk_bytes: int) -> StepResult:
        options, max_chunks = self._chunks(chunk_bytes)
        if not max_chunks:
            return skipped(self.table, _STEP, "no partition has files that gain by it")
        history = read_history(self.engine, self.table)
        done: list[Rewritten] = []
        conflict: CommitConflict | None = None
        while conflict is None and len(done) < max_chunks:
            if done:
                time.sleep(_PAUSE_SECONDS)
            try:
                with free_lock(self.engine, self.table):
                    rewritten = rewrite_data_files(
                        self.engine, self.table, options, self.sort_order
                    )
            except CommitConflict as error:
                conflict = error
                continue
            done.append(rewritten)
            spent_bytes = 2 * sum(rewritten.size_bytes for rewritten in done)
            if not rewritten.files or (max_bytes and spent_bytes >= max_bytes):
                break
        self._finish()
        later = read_history(self.engine, self.table)
        # These commits only moved rows to other files.
        commits = [
            snapshot
            for snapshot in later.line
            if snapshot.operation == "replace" and snapshot.snapshot_id not in history.snapshots
        ]
        step_metrics = {
            "files_before": _file_count(history),
            "files_after": _file_count(later),
            "rewritten_files": sum(rewritten.files for rewritten in done),
            "rewritten_bytes": sum(rewritten.size_bytes for rewritten in done),
            "added_bytes": sum(commit.count("added-files-size") for commit in commits),
        }
        result = StepResult(self.table, _STEP, "done", self.note, step_metrics)
        if conflict is not None and not commits:
            raise conflict
        failed_files = sum(rewritten.failed_files for rewritten in done)
        if conflict is not None:
            reason = f"{conflict}, after some files were rewritten"
            return replace(result, outcome="partial", reason=reason, had_conflict=True)
        if failed_files:
            reason = f"{failed_files} files could not be rewritten"
            return replace(result, outcome="partial", reason=reason)
        if not commits:
            return skipped(self.table, _STEP, "Iceberg found no files that gain by it")
        return result

    def _chunks(self, chunk_bytes: int) -> tuple[dict[str, str], int]:
        """Return the options of each chunk, and the maximum number of chunks."""
        health = read_table_health(self.engine, self.table, lists_folder=False)
        files = size_bytes = 0
        for partition in health.partitions:
            if partition.delete_files:
                files += partition.data_files
                size_bytes += partition.data_bytes
            elif partition.small_files >= int(self.options["min-input-files"]):
                files += partition.small_files
                size_bytes += partition.small_bytes
        options = dict(self.options)
        if health.delete_files:
            options |= DELETED_ROWS_OPTIONS
        is_one_chunk = size_bytes <= chunk_bytes
        if is_one_chunk or not self.engine.catalog.iceberg.limits_rewritten_files:
            return options, int(files > 0 or health.delete_files > 0)
        chunks = ceil(size_bytes / chunk_bytes)
        options["max-files-to-rewrite"] = str(max(MIN_FILES_AT_REST, files // chunks))
        # A last chunk merges the files that earlier ones left small.
        return options, chunks + 1

    def _finish(self) -> None:
        """Drop remaining delete positions of removed files, and commit the watermarks again.

        After a conflict, the other commit contains the watermarks, or the next expiry does it.
        """
        with suppress(CommitConflict), free_lock(self.engine, self.table):
            loaded = self.engine.catalog.load(self.table)
            main = history_of(self.table, loaded).main
            # Deletion vectors, of format 3, are removed with their data files.
            if main and main.count("total-position-deletes") and loaded.format_version < 3:
                rewrite_position_deletes(self.engine, self.table)
            carry_watermarks(self.engine, self.table)


def _file_count(history: History) -> int:
    """Return the number of main's data and delete files."""
    main = history.main
    if main is None:
        return 0
    return main.count("total-data-files") + main.count("total-delete-files")
