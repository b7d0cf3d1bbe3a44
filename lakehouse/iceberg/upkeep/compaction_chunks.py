"""Which files of which partitions a compaction rewrites, in chunks of a bounded size; no JVM."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.live_files import read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.measured_health import SMALL_SHARE, PartitionKey

if TYPE_CHECKING:
    from pyiceberg.table import Table

LARGE_SHARE = 1.8
"""Share of the target size above which a data file is split; Iceberg's own bound."""
_MOST_PARTITIONS = 100
"""Partitions in one filter; Spark takes its time for longer ones."""


@dataclass(frozen=True)
class Chunk:
    """What is rewritten in one go: partitions, or some of the files of a large one."""

    partitions: tuple[PartitionKey, ...]
    input_bytes: int
    most_files: int | None = None
    """How many files are rewritten at once; None for all."""
    repeats: int = 1
    """How often that is done until all are."""


@dataclass
class _Candidates:
    files: int = 0
    size_bytes: int = 0
    has_deletes: bool = False
    has_large: bool = False

    @property
    def is_worth_it(self) -> bool:
        return self.files > 1 or self.has_large or self.has_deletes


def plan_chunks(
    table: "Table", partitions: Sequence[PartitionKey], target_bytes: int, chunk_bytes: int
) -> list[Chunk]:
    """Return what is to be rewritten, of some partitions or of all where none is named.

    A partition has a part in it where two of its files are small, one is large, or it has
    delete files. A partition of more than `chunk_bytes` is a chunk of its own, done in turns.
    """
    wanted = set(partitions)
    chunks: list[Chunk] = []
    batch: list[PartitionKey] = []
    batch_bytes = 0
    for key, candidates in _candidates(table, target_bytes).items():
        if (wanted and key not in wanted) or not candidates.is_worth_it:
            continue
        if candidates.size_bytes > chunk_bytes:
            chunks.append(_in_turns(key, candidates, chunk_bytes))
            continue
        is_full = batch_bytes + candidates.size_bytes > chunk_bytes
        if batch and (is_full or len(batch) == _MOST_PARTITIONS):
            chunks.append(Chunk(tuple(batch), batch_bytes))
            batch, batch_bytes = [], 0
        batch.append(key)
        batch_bytes += candidates.size_bytes
    if batch:
        chunks.append(Chunk(tuple(batch), batch_bytes))
    return chunks


def _candidates(table: "Table", target_bytes: int) -> dict[PartitionKey, _Candidates]:
    files = list(read_live_files(table, read_manifests(table)))
    candidates: dict[PartitionKey, _Candidates] = {}
    deleted_from = set()
    for file in files:
        if file.content != "data":
            deleted_from.add(file.deletes_from or file.partition)
            candidates.setdefault(file.partition, _Candidates(has_deletes=True))
    for file in files:
        if file.content != "data":
            continue
        # A delete file that is of no single data file may be of any in its partition.
        has_deletes = not deleted_from.isdisjoint((file.path, file.partition))
        is_large = file.size_bytes > LARGE_SHARE * target_bytes
        if is_large or has_deletes or file.size_bytes < SMALL_SHARE * target_bytes:
            partition = candidates.setdefault(file.partition, _Candidates())
            partition.files += 1
            partition.size_bytes += file.size_bytes
            partition.has_large |= is_large
    return candidates


def _in_turns(key: PartitionKey, candidates: _Candidates, chunk_bytes: int) -> Chunk:
    turns = ceil(candidates.size_bytes / chunk_bytes)
    most_files = max(2, candidates.files // turns)
    return Chunk((key,), candidates.size_bytes, most_files, repeats=turns + 1)
