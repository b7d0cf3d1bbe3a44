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

from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.column_types import column_type
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.history import History, Snapshot
from lakehouse.iceberg.metadata.live_files import read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.measured_health import PartitionHealth, TableHealth
from lakehouse.iceberg.upkeep.free_lock import (
    CHUNK_BYTES,
    CommitConflict,
    free_lock,
    run_step,
    skipped,
    verified,
)
from lakehouse.iceberg.upkeep.readers_view import changed_row_counts, view_of
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    DELETED_ROWS_OPTIONS,
    Rewritten,
    rewrite_data_files,
    rewrite_position_deletes,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.maintenance.upkeep_plan import (
    Condition,
    PlannedStep,
    StepInputs,
    count_text,
    next_day,
)
from lakehouse.tables.quoting import dotted

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
    """A partition that compaction improves, with its estimate."""

    partition: PartitionHealth
    min_files: int
    small_files: int
    delete_files: int
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
        need = _need(partition, health, MIN_FILES_AT_REST if is_at_rest else MIN_FILES)
        if need is None:
            continue
        files = need.small_files + need.delete_files
        if age < HOT_FOR and files < MAX_FILES_WHILE_HOT and not named_by_user:
            need = replace(need, hot_until=now - age + HOT_FOR)
        needs.append(need)
    return needs


def _need(partition: PartitionHealth, health: TableHealth, min_files: int) -> Need | None:
    fewer_files = partition.fewer_files(health.target_bytes)
    has_small = partition.small_files >= min_files and fewer_files >= min_files - 1
    deleted_share = partition.deleted_rows / partition.rows if partition.rows else 0.0
    has_deletes = partition.delete_files >= min_files or deleted_share >= MIN_DELETED_SHARE
    if not has_small and not has_deletes:
        return None
    delete_files = partition.delete_files if has_deletes else 0
    cost_bytes = 2 * partition.small_bytes
    if has_deletes:
        # Metadata does not show which files have deletes, so all files count.
        cost_bytes = 2 * partition.data_bytes + partition.delete_bytes
    return Need(
        partition,
        min_files,
        small_files=partition.small_files if has_small else 0,
        delete_files=delete_files,
        fewer_files=(fewer_files if has_small else 0) + delete_files,
        cost_bytes=cost_bytes,
        hot_until=None,
    )


def saved_files_per_byte(inputs: StepInputs) -> float:
    """Return the file opens that a compaction saves per day and byte of its cost."""
    needs = find_needs(inputs.health, inputs.now, named_by_user=inputs.named_by_user)
    cost_bytes = sum(need.cost_bytes for need in needs)
    fewer_files = sum(need.fewer_files for need in needs)
    return fewer_files * inputs.reads_a_day / max(cost_bytes, 1)


def plan_compaction(inputs: StepInputs) -> PlannedStep:
    """Plan the compaction of a table: due if a partition needs it and was not just written."""
    health, policy = inputs.health, inputs.policy
    needs = find_needs(health, inputs.now, named_by_user=inputs.named_by_user)
    ready = [need for need in needs if need.hot_until is None]
    not_before = min((need.hot_until for need in needs if need.hot_until), default=None)
    found = _describe(ready or needs)
    conditions = [Condition(found, bool(needs))]
    if needs and not ready:
        conditions = [Condition(f"{found}: written to within the last hour", False)]
    # Iceberg also selects files of partitions that need not be compacted yet.
    cost_bytes = sum(need.cost_bytes for need in needs)
    max_bytes = None
    if ready:
        if inputs.budget.left_bytes <= 0:
            conditions = [Condition(f"{found}: the bytes of today are used up", False)]
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
        conditions,
        work,
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
    counts = []
    small_files = sum(need.small_files for need in needs)
    delete_files = sum(need.delete_files for need in needs)
    if small_files:
        counts.append(count_text(small_files, "small file"))
    if delete_files:
        counts.append(count_text(delete_files, "delete file"))
    return f"{count_text(len(needs), 'partition')} with {' and '.join(counts)}"


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
    rewriting = _Rewriting(engine, table, options, sort_order, note, min_files)
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
    min_files: int

    def run(self, max_bytes: int | None, chunk_bytes: int) -> StepResult:
        health = read_table_health(self.engine, self.table, lists_folder=False)
        max_files, max_chunks = self._chunks(health, chunk_bytes)
        if not max_chunks:
            return skipped(self.table, _STEP, "no partition has files that gain by it")
        view, history = view_of(self.engine, self.table)
        done: list[Rewritten] = []
        conflict: CommitConflict | None = None
        while len(done) < max_chunks:
            try:
                with free_lock(self.engine, self.table):
                    done.append(self._rewrite_chunk(health, max_files))
            except CommitConflict as error:
                conflict = error
                break
            spent_bytes = 2 * sum(rewritten.size_bytes for rewritten in done)
            if not done[-1].files or (max_bytes and spent_bytes >= max_bytes):
                break
            if len(done) < max_chunks:
                time.sleep(_PAUSE_SECONDS)
        self._finish()
        later_view, later = view_of(self.engine, self.table)
        commits = _replacing(history, later)
        changes = view.changes(later_view)
        changes += changed_row_counts(self.engine, self.table, history)
        step_metrics = {
            "files_before": _file_count(history),
            "files_after": _file_count(later),
            "rewritten_files": sum(rewritten.files for rewritten in done),
            "rewritten_bytes": sum(rewritten.size_bytes for rewritten in done),
            "added_bytes": sum(commit.count("added-files-size") for commit in commits),
        }
        result = verified(self.table, _STEP, step_metrics, changes)
        if changes:
            return result
        if conflict is not None:
            if not commits:
                raise conflict
            reason = f"{conflict}, after some files were rewritten"
            return replace(result, outcome="partial", reason=reason, had_conflict=True)
        failed_files = sum(rewritten.failed_files for rewritten in done)
        if failed_files:
            reason = f"{failed_files} files could not be rewritten"
            return replace(result, outcome="partial", reason=reason)
        if not commits:
            return skipped(self.table, _STEP, "Iceberg found no files that gain by it")
        return replace(result, reason=self.note)

    def _chunks(self, health: TableHealth, chunk_bytes: int) -> tuple[int | None, int]:
        """Return the maximum number of files of a chunk, None for all, and of chunks."""
        files = size_bytes = 0
        for partition in health.partitions:
            if partition.delete_files:
                files += partition.data_files
                size_bytes += partition.data_bytes
            elif partition.small_files >= self.min_files:
                files += partition.small_files
                size_bytes += partition.small_bytes
        has_work = files > 0 or health.delete_files > 0
        if size_bytes <= chunk_bytes or not self.engine.catalog.iceberg.limits_rewritten_files:
            return None, int(has_work)
        chunks = ceil(size_bytes / chunk_bytes)
        # A last chunk merges the files that earlier ones left small.
        return max(MIN_FILES_AT_REST, files // chunks), chunks + 1

    def _rewrite_chunk(self, health: TableHealth, max_files: int | None) -> Rewritten:
        options = {**self.options, **(DELETED_ROWS_OPTIONS if health.delete_files else {})}
        if max_files is not None:
            options["max-files-to-rewrite"] = str(max_files)
        return rewrite_data_files(self.engine, self.table, options, self.sort_order)

    def _finish(self) -> None:
        """Drop remaining delete positions of removed files, and commit the watermarks again.

        After a conflict, the other commit contains the watermarks, or the next expiry does it.
        """
        with suppress(CommitConflict), free_lock(self.engine, self.table):
            if _has_position_deletes(self.engine, self.table):
                rewrite_position_deletes(self.engine, self.table)
            carry_watermarks(self.engine, self.table)


def _has_position_deletes(engine: Engine, table: str) -> bool:
    """Whether position delete files remain; deletion vectors are removed with their data files."""
    loaded = engine.catalog.load(table)
    return any(
        file.content == "position deletes" and not file.path.endswith(".puffin")
        for file in read_live_files(loaded, read_manifests(loaded))
    )


def _replacing(before: History, after: History) -> list[Snapshot]:
    """Return main's snapshots since an earlier state that only moved rows to other files."""
    new = [one for one in after.line if one.snapshot_id not in before.snapshots]
    return [snapshot for snapshot in new if snapshot.operation == "replace"]


def _file_count(history: History) -> int:
    """Return the number of main's data and delete files."""
    main = history.main
    if main is None:
        return 0
    return main.count("total-data-files") + main.count("total-delete-files")
