"""Compaction: rewrites small and large data files, and those with deleted rows, to the target
size in chunks.

Each chunk is rewritten under the table's lock, so that a writer on this host waits for at most
one: 512 MiB, about 40 s on two cores (116 MB took 9 s). Writers on other hosts take precedence:
Iceberg rejects a rewrite whose files they changed.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.column_types import column_type
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.live_files import read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.upkeep.compaction_chunks import Chunk, plan_chunks
from lakehouse.iceberg.upkeep.free_lock import CommitConflict, free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.partition_filter import partitions_predicate, range_predicate
from lakehouse.iceberg.upkeep.readers_view import changed_row_counts, view_of
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    Layout,
    rewrite_data_files,
    rewrite_position_deletes,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "compact"
CHUNK_BYTES = 512 * 1024**2
_PAUSE_SECONDS = 0.5
"""Time between chunks in which the lock is free; waiting writers poll every 0.05 s."""


@dataclass
class _Compaction:
    """A running compaction of one table, with its results so far."""

    engine: Engine
    table: str
    layout: Layout
    rewritten_files: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0
    commits: int = 0
    failed_files: int = 0
    in_turn: str = ""
    """Why rows are sorted by columns in turn instead of the requested z-order."""
    differences: list[str] = field(default_factory=list)
    """Unexpected differences after the rewrite, as messages."""
    conflict: CommitConflict | None = None
    """The conflict that stopped it."""

    def work_through(self, chunks: Sequence[Chunk]) -> None:
        """Rewrite chunk by chunk, with pauses for writers."""
        for chunk in chunks:
            for _ in range(chunk.repeats):
                if self.commits:
                    time.sleep(_PAUSE_SECONDS)
                files_before = self.rewritten_files
                self._rewrite_and_verify(chunk)
                if self.conflict is not None:
                    return
                if self.rewritten_files == files_before:
                    break

    def _rewrite_and_verify(self, chunk: Chunk) -> None:
        loaded = self.engine.catalog.load(self.table)
        before, history = view_of(self.engine, self.table)
        predicate = self._predicate(loaded, chunk)
        try:
            with free_lock(self.engine, self.table):
                self._rewrite(chunk, predicate)
        except CommitConflict as conflict:
            self.conflict = conflict
        after, now = view_of(self.engine, self.table)
        self.differences += before.changes(after)
        # With several specs, files with other rows can have been rewritten too.
        row_predicate = predicate if len(loaded.specs()) == 1 else ""
        self.differences += changed_row_counts(self.engine, self.table, history, row_predicate)
        self._note_commits(history, now)

    def _predicate(self, loaded: "Table", chunk: Chunk) -> str:
        predicate = partitions_predicate(self.engine.catalog.name, loaded, chunk.partitions)
        if chunk.within is None:
            return predicate
        within = range_predicate(loaded, chunk.within)
        return f"({predicate}) AND {within}" if predicate else within

    def _rewrite(self, chunk: Chunk, predicate: str) -> None:
        main = read_history(self.engine, self.table).main
        has_deletes = main is not None and main.count("total-delete-files") > 0
        rewritten = rewrite_data_files(
            self.engine,
            self.table,
            self.layout,
            predicate,
            most_files=chunk.most_files,
            has_deletes=has_deletes,
            rewrites_all=chunk.rewrites_all,
        )
        self.rewritten_files += rewritten.files
        self.rewritten_bytes += rewritten.size_bytes
        self.failed_files += rewritten.failed_files
        # After the last turn, the remaining position deletes apply to no file.
        is_last = chunk.most_files is None or not rewritten.files
        if has_deletes and is_last and self._has_position_deletes(chunk):
            rewrite_position_deletes(self.engine, self.table, predicate)

    def _has_position_deletes(self, chunk: Chunk) -> bool:
        """Whether position delete files remain in a chunk; deletion vectors are removed with
        their data files.
        """
        loaded = self.engine.catalog.load(self.table)
        for file in read_live_files(loaded, read_manifests(loaded)):
            is_vector = file.path.endswith(".puffin")
            is_position_deletes = file.content == "position deletes" and not is_vector
            if is_position_deletes and file.partition in chunk.partitions:
                return True
        return False

    def _note_commits(self, before: History, after: History) -> None:
        for snapshot in after.line:
            if snapshot.snapshot_id in before.snapshots:
                return
            if snapshot.operation == "replace":
                self.commits += 1
                self.added_bytes += snapshot.count("added-files-size")


def compact(
    engine: Engine,
    table: str,
    partitions: Sequence[PartitionKey] = (),
    *,
    target_bytes: int,
    sort_by: Sequence[str] = (),
    z_order: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> StepResult:
    """Rewrite the files of some partitions, by default all, in files of `target_bytes`.

    Files of other partition specs whose rows can be in a partition are rewritten with it.

    :param sort_by: columns to sort rows by: in turn, or by z-order with `z_order` if this
        Iceberg supports it; otherwise the result has a reason. By default files are only
        merged.
    :param chunk_bytes: how much is rewritten while the lock is held.
    :returns: `skipped` after a conflict or if no files gain by it; `partial` after a conflict
        following some completed chunks.
    """
    layout = Layout(target_bytes, tuple(sort_by), z_order)
    return run_step(
        table, _STEP, lambda: _compact(engine, table, partitions, layout, chunk_bytes)
    )


def _compact(
    engine: Engine,
    table: str,
    partitions: Sequence[PartitionKey],
    layout: Layout,
    chunk_bytes: int,
) -> StepResult:
    loaded = engine.catalog.load(table)
    chunks = plan_chunks(
        loaded,
        partitions,
        layout.target_bytes,
        chunk_bytes,
        in_turns=engine.catalog.iceberg.limits_rewritten_files,
    )
    if not chunks:
        return skipped(table, _STEP, "no partition has files that gain by it")
    files_before = _file_count(engine, table)
    in_turn = _lacks_z_order(engine, loaded, layout)
    if in_turn:
        layout = replace(layout, z_order=False)
    compaction = _Compaction(engine, table, layout, in_turn=in_turn)
    compaction.work_through(chunks)
    if compaction.commits:
        _carry_watermarks(engine, table)
    step_metrics = {
        "files_before": files_before,
        "files_after": _file_count(engine, table),
        "rewritten_files": compaction.rewritten_files,
        "rewritten_bytes": compaction.rewritten_bytes,
        "added_bytes": compaction.added_bytes,
    }
    return _result(compaction, step_metrics)


def _lacks_z_order(engine: Engine, loaded: "Table", layout: Layout) -> str:
    """Return the reason why z-order is not possible; empty if it is, or is not requested."""
    if not layout.z_order:
        return ""
    schema = loaded.schema()
    columns = {
        name: str(column_type(schema.find_field(name).field_type)) for name in layout.sort_by
    }
    return engine.catalog.iceberg.lacks_z_order_of(columns) or ""


def _carry_watermarks(engine: Engine, table: str) -> None:
    """Commit the watermarks to main again; after a conflict, the other commit contains them, or
    the next expiry does it.
    """
    try:
        with free_lock(engine, table):
            carry_watermarks(engine, table)
    except CommitConflict:
        return


def _file_count(engine: Engine, table: str) -> int:
    """Return the number of main's data and delete files."""
    main = read_history(engine, table).main
    if main is None:
        return 0
    return main.count("total-data-files") + main.count("total-delete-files")


def _result(compaction: _Compaction, step_metrics: Mapping[str, float]) -> StepResult:
    table, conflict = compaction.table, compaction.conflict
    if compaction.differences:
        reason = "; ".join(compaction.differences)
        return StepResult(table, _STEP, "failed", reason, step_metrics)
    if conflict is not None and not compaction.commits:
        raise conflict
    if conflict is not None:
        reason = f"{conflict}, after some files were rewritten"
        return StepResult(table, _STEP, "partial", reason, step_metrics, had_conflict=True)
    if compaction.failed_files:
        reason = f"{compaction.failed_files} files could not be rewritten"
        return StepResult(table, _STEP, "partial", reason, step_metrics)
    if not compaction.commits:
        return skipped(table, _STEP, "Iceberg found no files that gain by it")
    in_turn = f"sorted by columns in turn: {compaction.in_turn}" if compaction.in_turn else ""
    return StepResult(table, _STEP, "done", in_turn, step_metrics)
