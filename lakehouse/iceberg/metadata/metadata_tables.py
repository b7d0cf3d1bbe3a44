"""The metadata tables of Iceberg as values, read from the metadata itself: no JVM, no scan of
data.

They say what Spark's `files`, `manifests`, `history`, `partitions`, `snapshots` and `refs` say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.manifests import TableFile, read_files, read_manifests


@dataclass(frozen=True)
class Manifest:
    """A manifest of the current snapshot: a list of files of one partition spec."""

    content: Literal["data", "deletes"]
    path: str
    size_bytes: int
    spec_id: int
    added_snapshot_id: int | None
    added_files: int
    existing_files: int
    deleted_files: int


@dataclass(frozen=True)
class HistoryEntry:
    """When a snapshot became the one that readers see; rolled back ones are no ancestors of the
    current one.
    """

    made_current_at: datetime
    snapshot_id: int
    parent_id: int | None
    is_current_ancestor: bool


@dataclass(frozen=True)
class Partition:
    """What the current snapshot holds of one partition."""

    values: Mapping[str, Any]
    record_count: int
    file_count: int
    data_bytes: int
    delete_file_count: int
    delete_record_count: int


@dataclass(frozen=True)
class Ref:
    """A branch or a tag. What is None is kept for as long as the table's properties say."""

    name: str
    kind: Literal["branch", "tag"]
    snapshot_id: int
    max_ref_age_ms: int | None
    max_snapshot_age_ms: int | None
    min_snapshots_to_keep: int | None


def files(engine: Engine, table: str, snapshot_id: int | None = None) -> list[TableFile]:
    """Return the data and delete files of a snapshot, the current one unless another is named.

    :raises TableNotFound: when the catalog has no such table.
    """
    return list(read_files(engine.catalog.load(table), snapshot_id))


def manifests(engine: Engine, table: str) -> list[Manifest]:
    """Return the manifests of the current snapshot."""
    loaded = engine.catalog.load(table)
    return [
        Manifest(
            content="data" if found.content == 0 else "deletes",
            path=found.manifest_path,
            size_bytes=found.manifest_length,
            spec_id=found.partition_spec_id,
            added_snapshot_id=found.added_snapshot_id,
            added_files=found.added_files_count or 0,
            existing_files=found.existing_files_count or 0,
            deleted_files=found.deleted_files_count or 0,
        )
        for found in read_manifests(loaded)
    ]


def history(engine: Engine, table: str) -> list[HistoryEntry]:
    """Return what readers saw and from when, oldest first."""
    return _log(read_history(engine, table))


def partitions(engine: Engine, table: str) -> list[Partition]:
    """Return the partitions of the current snapshot; an unpartitioned table with files has one,
    of no values.
    """
    grouped: dict[tuple[Any, ...], list[TableFile]] = {}
    for file in files(engine, table):
        grouped.setdefault(tuple(file.partition.items()), []).append(file)
    return [_partition(members) for members in grouped.values()]


def snapshots(engine: Engine, table: str) -> list[Snapshot]:
    """Return the snapshots that are kept, of all branches, oldest first."""
    return sorted(
        read_history(engine, table).snapshots.values(),
        key=lambda snapshot: snapshot.committed_at,
    )


def refs(engine: Engine, table: str) -> list[Ref]:
    """Return the branches and tags by name, `main` among them once the table has a snapshot."""
    found = engine.catalog.load(table).metadata.refs
    return [
        Ref(
            name=name,
            kind="branch" if ref.snapshot_ref_type == "branch" else "tag",
            snapshot_id=ref.snapshot_id,
            max_ref_age_ms=ref.max_ref_age_ms,
            max_snapshot_age_ms=ref.max_snapshot_age_ms,
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
        )
        for name, ref in sorted(found.items())
    ]


def _partition(members: list[TableFile]) -> Partition:
    data = [file for file in members if file.content == "data"]
    deletes = [file for file in members if file.content != "data"]
    return Partition(
        values=members[0].partition,
        record_count=sum(file.record_count for file in data),
        file_count=len(data),
        data_bytes=sum(file.size_bytes for file in data),
        delete_file_count=len(deletes),
        delete_record_count=sum(file.record_count for file in deletes),
    )


def _log(found: History) -> list[HistoryEntry]:
    ancestors = {snapshot.snapshot_id for snapshot in found.line}
    return [
        HistoryEntry(
            made_current_at=made_current_at,
            snapshot_id=snapshot_id,
            parent_id=(
                found.snapshots[snapshot_id].parent_id
                if snapshot_id in found.snapshots
                else None
            ),
            is_current_ancestor=snapshot_id in ancestors,
        )
        for made_current_at, snapshot_id in found.log
    ]
