"""Which files of which partitions a compaction rewrites, in chunks of a bounded size; no JVM."""

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
"""Share of the target size above which a data file is split; Iceberg's own bound."""
_MOST_PARTITIONS = 100
"""Partitions in one filter; Spark takes its time for longer ones."""


@dataclass(frozen=True)
class Chunk:
    """What is rewritten in one go: partitions, or some of the files of a large one: so many at
    once, or those with values of a range.
    """

    partitions: tuple[PartitionKey, ...]
    input_bytes: int
    most_files: int | None = None
    """How many files are rewritten at once; None for all."""
    repeats: int = 1
    """How often that is done until all are."""
    rewrites_all: bool = False
    """Whether files of the right size are rewritten too, since they are of an old spec."""
    within: ColumnRange | None = None
    """The values that the files of one chunk have, and those of the others do not."""


@dataclass
class _PartitionFiles:
    """The data files of one partition, and which of them gain by being rewritten."""

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
    def moves_as_a_whole(self) -> bool:
        """Whether Iceberg would leave files of an old spec where they are, for their size is
        right, or there is no other to join one with.
        """
        has_right_sized = self.gaining_bytes < self.data_bytes
        return self.is_of_old_spec and (has_right_sized or self.gaining == 1)

    @property
    def is_worth_it(self) -> bool:
        return self.gaining > 1 or self.has_large or self.has_deletes or self.moves_as_a_whole

    @property
    def input_bytes(self) -> int:
        return self.data_bytes if self.moves_as_a_whole else self.gaining_bytes


def plan_chunks(
    table: "Table",
    partitions: Sequence[PartitionKey],
    target_bytes: int,
    chunk_bytes: int,
    *,
    in_turns: bool,
) -> list[Chunk]:
    """Return what is to be rewritten, of some partitions or of all where none is named.

    A partition has a part in it where two of its files are small, one is large, or it has
    delete files. A partition of more than `chunk_bytes` is a chunk of its own, done in turns;
    where Iceberg cannot be told how many files to take, it is split as one of an old spec is.

    Of an old partition spec, each file has: those of a partition move into today's spec at
    once, since the next turn would rewrite what the last one wrote. One of more than
    `chunk_bytes` is split by the values of a column that its files do not share; where each
    column's overlap, as where nothing is sorted, it stays a chunk.

    :param in_turns: whether Iceberg can be told how many files to take at once.
    """
    wanted = set(partitions)
    live = list(read_live_files(table, read_manifests(table)))
    joined: dict[PartitionKey, _PartitionFiles] = {}
    moved: dict[PartitionKey, _PartitionFiles] = {}
    for key, files in _files_by_partition(table, live, target_bytes).items():
        if (wanted and key not in wanted) or not files.is_worth_it:
            continue
        if files.moves_as_a_whole:
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
    """Take those out of some partitions that are larger than a chunk."""
    larger = {}
    for key, files in list(partitions.items()):
        if files.input_bytes > chunk_bytes:
            larger[key] = partitions.pop(key)
    return larger


def _batches(
    partitions: Mapping[PartitionKey, _PartitionFiles], chunk_bytes: int, *, rewrites_all: bool
) -> list[Chunk]:
    """Return chunks of whole partitions, none of which is larger than a chunk."""
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
        # A delete file that is of no single data file may be of any in its partition.
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
    if files.moves_as_a_whole:
        own = {file.path for file in data if file.partition == key}
    default_spec_id = table.spec().spec_id
    of_today: set[str] = set()
    if key.spec_id != default_spec_id:
        # The predicate of an old partition may name files of today's spec too.
        of_today = {file.path for file in data if file.partition.spec_id == default_spec_id}
    rewrites_all = files.moves_as_a_whole
    ranges = split_by_column(table, own, of_today, chunk_bytes)
    if len(ranges) < 2:
        return [Chunk((key,), files.input_bytes, rewrites_all=rewrites_all)]
    return [
        Chunk((key,), part.size_bytes, rewrites_all=rewrites_all, within=part)
        for part in ranges
    ]
