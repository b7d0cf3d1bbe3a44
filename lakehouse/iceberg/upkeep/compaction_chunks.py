"""Plan of a compaction: files to rewrite, in chunks of bounded size; no JVM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.live_files import LiveFile, read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.measured_health import SMALL_SHARE, PartitionKey
from lakehouse.iceberg.upkeep.column_ranges import ColumnRange, split_by_column

if TYPE_CHECKING:
    from pyiceberg.table import Table

LARGE_SHARE = 1.8
"""Share of the target size above which a data file is split: Iceberg's own limit."""
_MOST_PARTITIONS = 100
"""Maximum number of partitions in one filter; Spark plans longer ones slowly."""


@dataclass(frozen=True)
class Chunk:
    """A unit of rewriting: some partitions, or a part of a large one, by number of files or by
    range.
    """

    partitions: tuple[PartitionKey, ...]
    input_bytes: int
    most_files: int | None = None
    """Maximum number of files to rewrite at once; None for all."""
    repeats: int = 1
    """Number of repetitions until all are rewritten."""
    rewrites_all: bool = False
    """Whether files of the target size are rewritten too, since they have an old spec."""
    within: ColumnRange | None = None
    """The value range of this chunk's files; other chunks have other ranges."""


@dataclass
class _PartitionFiles:
    """The data files of one partition, and those that gain by a rewrite."""

    is_of_old_spec: bool
    gaining_paths: set[str] = field(default_factory=set)
    gaining_bytes: int = 0
    data_bytes: int = 0
    has_deletes: bool = False
    has_large: bool = False

    @property
    def gaining(self) -> int:
        return len(self.gaining_paths)

    @property
    def moves_entirely(self) -> bool:
        """Whether Iceberg would keep files with an old spec, since their size is right or there
        is only one.
        """
        has_right_sized = self.gaining_bytes < self.data_bytes
        return self.is_of_old_spec and (has_right_sized or self.gaining == 1)

    @property
    def is_worth_it(self) -> bool:
        return self.gaining > 1 or self.has_large or self.has_deletes or self.moves_entirely

    @property
    def input_bytes(self) -> int:
        return self.data_bytes if self.moves_entirely else self.gaining_bytes


def plan_chunks(
    table: "Table",
    partitions: Sequence[PartitionKey],
    target_bytes: int,
    chunk_bytes: int,
    *,
    in_turns: bool,
) -> list[Chunk]:
    """Plan the chunks of some partitions, by default all.

    A partition is included if it has two small files, one large file, or delete files. A
    partition of more than `chunk_bytes` becomes a chunk that is rewritten in turns. If Iceberg
    does not support a limit on the number of files, it is split by ranges.

    All files of an old partition spec move to the current spec at once, since another turn
    would rewrite the same files. A partition of more than `chunk_bytes` is split by the values
    of a column without overlaps; if there is none, as without sorting, it stays one chunk.

    :param in_turns: whether Iceberg supports a limit on the number of files.
    """
    requested = set(partitions)
    live = list(read_live_files(table, read_manifests(table)))
    joined: dict[PartitionKey, _PartitionFiles] = {}
    moved: dict[PartitionKey, _PartitionFiles] = {}
    for key, files in _files_by_partition(table, live, target_bytes).items():
        if (requested and key not in requested) or not files.is_worth_it:
            continue
        if files.moves_entirely:
            moved[key] = files
        else:
            joined[key] = files
    chunks: list[Chunk] = []
    for key, files in _pop_larger(joined, chunk_bytes).items():
        if in_turns:
            chunks.append(_in_turns(key, files, chunk_bytes))
        else:
            chunks += _in_ranges(table, key, files, live, chunk_bytes)
    chunks += _batches(joined, chunk_bytes, rewrites_all=False)
    for key, files in _pop_larger(moved, chunk_bytes).items():
        chunks += _in_ranges(table, key, files, live, chunk_bytes)
    chunks += _batches(moved, chunk_bytes, rewrites_all=True)
    return chunks


def _pop_larger(
    partitions: dict[PartitionKey, _PartitionFiles], chunk_bytes: int
) -> dict[PartitionKey, _PartitionFiles]:
    """Remove and return the partitions that are larger than a chunk."""
    larger = {}
    for key, files in list(partitions.items()):
        if files.input_bytes > chunk_bytes:
            larger[key] = partitions.pop(key)
    return larger


def _batches(
    partitions: Mapping[PartitionKey, _PartitionFiles], chunk_bytes: int, *, rewrites_all: bool
) -> list[Chunk]:
    """Return chunks of entire partitions, each smaller than a chunk."""
    chunks: list[Chunk] = []
    batch: list[PartitionKey] = []
    batch_bytes = 0
    for key, files in partitions.items():
        is_full = batch_bytes + files.input_bytes > chunk_bytes
        if batch and (is_full or len(batch) == _MOST_PARTITIONS):
            chunks.append(Chunk(tuple(batch), batch_bytes, rewrites_all=rewrites_all))
            batch, batch_bytes = [], 0
        batch.append(key)
        batch_bytes += files.input_bytes
    if batch:
        chunks.append(Chunk(tuple(batch), batch_bytes, rewrites_all=rewrites_all))
    return chunks


def _files_by_partition(
    table: "Table", live: Sequence[LiveFile], target_bytes: int
) -> dict[PartitionKey, _PartitionFiles]:
    default_spec_id = table.spec().spec_id
    by_partition = {}
    for file in live:
        is_old = file.partition.spec_id != default_spec_id
        by_partition[file.partition] = _PartitionFiles(is_old)
    deleted_from = set()
    for file in live:
        if file.content != "data":
            deleted_from.add(file.deletes_from or file.partition)
            by_partition[file.partition].has_deletes = True
    for file in live:
        if file.content != "data":
            continue
        partition = by_partition[file.partition]
        partition.data_bytes += file.size_bytes
        # A delete file without a referenced data file can apply to any file in its partition.
        has_deletes = not deleted_from.isdisjoint((file.path, file.partition))
        is_large = file.size_bytes > LARGE_SHARE * target_bytes
        if is_large or has_deletes or file.size_bytes < SMALL_SHARE * target_bytes:
            partition.gaining_paths.add(file.path)
            partition.gaining_bytes += file.size_bytes
            partition.has_large |= is_large
    return by_partition


def _in_turns(key: PartitionKey, files: _PartitionFiles, chunk_bytes: int) -> Chunk:
    turns = ceil(files.gaining_bytes / chunk_bytes)
    most_files = max(2, files.gaining // turns)
    return Chunk((key,), files.gaining_bytes, most_files, repeats=turns + 1)


def _in_ranges(
    table: "Table",
    key: PartitionKey,
    files: _PartitionFiles,
    live: Sequence[LiveFile],
    chunk_bytes: int,
) -> list[Chunk]:
    data = [file for file in live if file.content == "data"]
    own = files.gaining_paths
    if files.moves_entirely:
        own = {file.path for file in data if file.partition == key}
    default_spec_id = table.spec().spec_id
    of_today: set[str] = set()
    if key.spec_id != default_spec_id:
        # The predicate of an old partition can also match files of the current spec.
        of_today = {file.path for file in data if file.partition.spec_id == default_spec_id}
    rewrites_all = files.moves_entirely
    ranges = split_by_column(table, own, of_today, chunk_bytes)
    if len(ranges) < 2:
        return [Chunk((key,), files.input_bytes, rewrites_all=rewrites_all)]
    return [
        Chunk((key,), part.size_bytes, rewrites_all=rewrites_all, within=part)
        for part in ranges
    ]
