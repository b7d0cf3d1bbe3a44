"""Compaction: small, large and deleted-from data files are written again in files of the target
size, a chunk at a time.

Each chunk holds the table's lock, so that a writer on this host waits for no more than one of
them: 512 MiB, some 40 s on two cores (116 MB took 9 s). A writer that does not know the lock
wins: Iceberg refuses the commit of a rewrite whose files it changed.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.live_files import read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.table_health import PartitionKey
from lakehouse.iceberg.upkeep.compaction_plan import Chunk, plan_chunks
from lakehouse.iceberg.upkeep.lost_race import RaceLost, free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.partition_filter import partitions_predicate
from lakehouse.iceberg.upkeep.readers_view import changed_row_counts, view_of
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.quoting import dotted, identifier, literal

_STEP: StepName = "compact"
CHUNK_BYTES = 512 * 1024**2
_PAUSE_SECONDS = 0.5
"""How long the lock is free between two chunks; who waits for it looks every 0.05 s."""


@dataclass(frozen=True)
class Layout:
    """How the files that are written again are to be."""

    target_bytes: int
    sort_by: tuple[str, ...] = ()
    z_order: bool = False


@dataclass
class _Progress:
    """What a compaction did so far."""

    figures: dict[str, float] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    failed_files: int = 0

    def count(self, name: str, value: float) -> None:
        self.figures[name] = self.figures.get(name, 0) + value


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
    """Write the files of some partitions again, of all where none is named, in files of
    `target_bytes`; those of other partitions stay where they are.

    Files of another partition spec whose rows may lie in a partition are written with it.

    :param sort_by: columns by which the rows of a file are sorted: in turn, or all at once
        where `z_order`. Left out, files are joined as they are.
    :param chunk_bytes: how much is rewritten while the lock is held.
    :returns: `skipped` where a writer came first or nothing gains; `partial` where it came
        after some chunks, which stay.
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
    chunks = plan_chunks(loaded, partitions, layout.target_bytes, chunk_bytes)
    if not chunks:
        return skipped(table, _STEP, "no partition has files that gain by it")
    progress = _Progress({"files_before": _file_count(engine, table)})
    lost = _work_through(engine, table, chunks, layout, progress)
    if progress.figures["added_bytes"]:
        _carry_watermarks(engine, table)
    progress.figures["files_after"] = _file_count(engine, table)
    return _result(table, progress, lost)


def _work_through(
    engine: Engine, table: str, chunks: list[Chunk], layout: Layout, progress: _Progress
) -> RaceLost | None:
    """Rewrite chunk by chunk, verify each, and return what ended it early."""
    for chunk in chunks:
        for _ in range(chunk.repeats):
            before, history = view_of(engine, table)
            loaded = engine.catalog.load(table)
            predicate = partitions_predicate(engine.catalog.name, loaded, chunk.partitions)
            rewritten, lost = _attempt(engine, table, chunk, layout, predicate, progress)
            after, now = view_of(engine, table)
            progress.differences += before.changes(after)
            counted = predicate if len(loaded.specs()) == 1 else ""
            progress.differences += changed_row_counts(engine, table, history, counted)
            progress.count("added_bytes", _added_bytes(history, now))
            if lost is not None:
                return lost
            if not rewritten:
                break
            time.sleep(_PAUSE_SECONDS)
    return None


def _attempt(
    engine: Engine,
    table: str,
    chunk: Chunk,
    layout: Layout,
    predicate: str,
    progress: _Progress,
) -> tuple[int, RaceLost | None]:
    """Rewrite a chunk under the lock; return how many data files were written again, and what
    ended it early.
    """
    rewritten = 0
    try:
        with free_lock(engine, table):
            has_deletes = _has_deletes(read_history(engine, table))
            options = _options(chunk, layout, has_deletes=has_deletes)
            rewritten = _rewrite_data_files(engine, table, layout, options, predicate, progress)
            # What is left of them deletes nothing any more, once all turns are done.
            is_last = chunk.most_files is None or not rewritten
            if has_deletes and is_last and _has_position_deletes(engine, table, chunk):
                _rewrite_position_deletes(engine, table, predicate)
    except RaceLost as lost:
        return rewritten, lost
    return rewritten, None


def _carry_watermarks(engine: Engine, table: str) -> None:
    """Let main say again what it was computed from; where a writer comes first, its own commit
    does, or the next expiry.
    """
    try:
        with free_lock(engine, table):
            carry_watermarks(engine, table)
    except RaceLost:
        return


def _options(chunk: Chunk, layout: Layout, *, has_deletes: bool) -> dict[str, str]:
    options = {
        "target-file-size-bytes": str(layout.target_bytes),
        "min-input-files": "2",
    }
    if has_deletes:
        options |= {
            "delete-file-threshold": "1",
            "remove-dangling-deletes": "true",
            # New files that count as old as those they are made from keep the delete files of
            # the last commit alive, which then delete nothing.
            "use-starting-sequence-number": "false",
        }
    if chunk.most_files is not None:
        options["max-files-to-rewrite"] = str(chunk.most_files)
    return options


def _rewrite_data_files(
    engine: Engine,
    table: str,
    layout: Layout,
    options: Mapping[str, str],
    predicate: str,
    progress: _Progress,
) -> int:
    arguments = _arguments(engine, table, options, predicate)
    if layout.sort_by:
        columns = ", ".join(dotted(column) for column in layout.sort_by)
        order = f"zorder({columns})" if layout.z_order else columns
        arguments += f", strategy => 'sort', sort_order => {literal(order)}"
    statement = f"CALL {identifier(engine.catalog.name)}.system.rewrite_data_files({arguments})"
    row = engine.sql(statement).collect()[0]
    progress.count("rewritten_files", row["rewritten_data_files_count"])
    progress.count("rewritten_bytes", row["rewritten_bytes_count"])
    progress.failed_files += row["failed_data_files_count"]
    return int(row["rewritten_data_files_count"])


def _rewrite_position_deletes(engine: Engine, table: str, predicate: str) -> None:
    arguments = _arguments(engine, table, {"rewrite-all": "true"}, predicate)
    procedure = f"{identifier(engine.catalog.name)}.system.rewrite_position_delete_files"
    engine.sql(f"CALL {procedure}({arguments})").collect()


def _arguments(engine: Engine, table: str, options: Mapping[str, str], predicate: str) -> str:
    pairs = ", ".join(literal(text) for option in options.items() for text in option)
    name = literal(f"{engine.catalog.name}.{table}")
    where = f", where => {literal(predicate)}" if predicate else ""
    return f"table => {name}, options => map({pairs}){where}"


def _has_deletes(history: History) -> bool:
    return history.main is not None and history.main.count("total-delete-files") > 0


def _has_position_deletes(engine: Engine, table: str, chunk: Chunk) -> bool:
    """Whether files of position deletes are left in a chunk; deletion vectors go with their
    data files.
    """
    loaded = engine.catalog.load(table)
    for file in read_live_files(loaded, read_manifests(loaded)):
        is_vector = file.path.endswith(".puffin")
        is_position_deletes = file.content == "position deletes" and not is_vector
        if is_position_deletes and file.partition in chunk.partitions:
            return True
    return False


def _file_count(engine: Engine, table: str) -> int:
    """Return how many data and delete files main has."""
    main = read_history(engine, table).main
    if main is None:
        return 0
    return main.count("total-data-files") + main.count("total-delete-files")


def _added_bytes(before: History, after: History) -> int:
    """Return the bytes that rewrites on main added since."""
    added = 0
    for snapshot in after.line:
        if snapshot.snapshot_id in before.snapshots:
            break
        if snapshot.operation == "replace":
            added += snapshot.count("added-files-size")
    return added


def _result(table: str, progress: _Progress, lost: RaceLost | None) -> StepResult:
    figures = progress.figures
    if progress.differences:
        return StepResult(table, _STEP, "failed", "; ".join(progress.differences), figures)
    did_nothing = not figures.get("rewritten_files") and not figures.get("added_bytes")
    if lost is not None and did_nothing:
        raise lost
    if lost is not None:
        return StepResult(table, _STEP, "partial", f"{lost}, after some of the files", figures)
    if progress.failed_files:
        reason = f"{progress.failed_files} files could not be written again"
        return StepResult(table, _STEP, "partial", reason, figures)
    if did_nothing and figures["files_before"] == figures["files_after"]:
        return skipped(table, _STEP, "Iceberg found no files that gain by it")
    return StepResult(table, _STEP, "done", "", figures)
