"""Table health measured from metadata: reads each current manifest once, no JVM, no data scan."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_metrics import (
    PartitionHealth,
    PartitionKey,
    RefHealth,
    SnapshotPin,
    TableHealth,
)
from lakehouse.iceberg.metadata.manifests import (
    LiveFile,
    dangling_deletes,
    read_live_files,
    read_manifests,
)
from lakehouse.iceberg.metadata.small_files import is_small
from lakehouse.iceberg.metadata.snapshots import MAIN, History, history_of
from lakehouse.iceberg.metadata.table_locations import (
    LocationFile,
    list_metadata_folder,
    lost_metadata_files,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table

_DEFAULT_TARGET_BYTES = 512 * 2**20
"""Iceberg's default of `write.target-file-size-bytes`."""
_SIZES = {"min": 0.0, "p10": 0.1, "median": 0.5, "p90": 0.9, "max": 1.0}


def read_table_health(
    engine: Engine,
    table: str,
    *,
    pins: Sequence[SnapshotPin] = (),
    lists_folder: bool = True,
    now: datetime | None = None,
) -> TableHealth:
    """Measure the health of a table.

    :param pins: references to old snapshots by other tables.
    :param lists_folder: whether to list the metadata folder, for its size and orphan files; in
        a bucket this takes one request per 1,000 files.
    :raises TableNotFound: if the catalog has no such table.
    :raises TableDamaged: if a metadata file is missing or cannot be read.
    """
    with explain_table(table):
        loaded = engine.catalog.load(table)
        return measure_health(table, loaded, pins=pins, lists_folder=lists_folder, now=now)


def measure_health(
    name: str,
    table: "Table",
    *,
    pins: Sequence[SnapshotPin] = (),
    lists_folder: bool = True,
    now: datetime | None = None,
) -> TableHealth:
    """Measure the health of a table that PyIceberg has loaded."""
    history = history_of(name, table)
    manifests = read_manifests(table)
    files = list(read_live_files(table, manifests))
    declared = table.properties.get("write.target-file-size-bytes")
    target_bytes = int(declared or _DEFAULT_TARGET_BYTES)
    listed = list_metadata_folder(table) if lists_folder else None
    lost = None
    if listed is not None:
        lost = tuple(sorted(file.path for file in lost_metadata_files(table, listed).values()))
    metadata_json_bytes = len(table.io.new_input(table.metadata_location))
    manifest_bytes = sum(manifest.manifest_length for manifest in manifests)
    return TableHealth(
        table=name,
        measured_at=now or datetime.now(UTC),
        metadata_location=table.metadata_location,
        snapshot_id=history.refs.get(MAIN),
        format_version=table.metadata.format_version,
        default_spec_id=table.spec().spec_id,
        target_bytes=target_bytes,
        partitions=_partitions(files, history, target_bytes),
        file_sizes=_size_spread(files),
        snapshot_times=tuple(
            sorted(snapshot.committed_at for snapshot in history.snapshots.values())
        ),
        manifests=len(manifests),
        manifest_bytes=manifest_bytes,
        metadata_json_bytes=metadata_json_bytes,
        metadata_bytes=None if listed is None else _bytes(listed.values()),
        lost_metadata_files=lost,
        refs=_refs(table, history),
        pins=tuple(sorted(pins, key=lambda pin: pin.committed_at)),
    )


def _partitions(
    files: Sequence[LiveFile], history: History, target_bytes: int
) -> tuple[PartitionHealth, ...]:
    dangling = set(dangling_deletes(files))
    by_key: dict[PartitionKey, list[LiveFile]] = {}
    for file in files:
        by_key.setdefault(file.partition, []).append(file)
    keys = sorted(by_key, key=lambda key: (key.spec_id, repr(key.values)))
    return tuple(_partition(key, by_key[key], dangling, history, target_bytes) for key in keys)


def _partition(
    key: PartitionKey,
    files: Sequence[LiveFile],
    dangling: set[LiveFile],
    history: History,
    target_bytes: int,
) -> PartitionHealth:
    data = [file for file in files if file.content == "data"]
    small = [file for file in data if is_small(file.size_bytes, target_bytes)]
    deletes = [file for file in files if file.content != "data"]
    needed = [file for file in deletes if file not in dangling]
    paths = "\n".join(sorted(file.path for file in files))
    return PartitionHealth(
        key=key,
        rows=_rows(data),
        data_files=len(data),
        data_bytes=_bytes(data),
        small_files=len(small),
        small_bytes=_bytes(small),
        delete_files=len(deletes),
        delete_bytes=_bytes(deletes),
        deleted_rows=_rows(needed),
        dangling_delete_files=len(deletes) - len(needed),
        newest_file_at=_newest_at(files, history),
        files_digest=hashlib.sha256(paths.encode()).hexdigest()[:16],
    )


def _rows(files: Iterable[LiveFile]) -> int:
    return sum(file.rows for file in files)


def _bytes(files: Iterable[LiveFile | LocationFile]) -> int:
    return sum(file.size_bytes for file in files)


def _newest_at(files: Iterable[LiveFile], history: History) -> datetime | None:
    retained = history.snapshots.keys() & {file.snapshot_id for file in files}
    # Snapshots expire oldest first, so the newest is retained if any is.
    return max(
        (history.snapshots[snapshot_id].committed_at for snapshot_id in retained), default=None
    )


def _size_spread(files: Iterable[LiveFile]) -> Mapping[str, int]:
    sizes = sorted(file.size_bytes for file in files if file.content == "data")
    if not sizes:
        return {}
    return {name: sizes[round(share * (len(sizes) - 1))] for name, share in _SIZES.items()}


def _refs(table: "Table", history: History) -> tuple[RefHealth, ...]:
    refs = []
    for name, ref in table.metadata.refs.items():
        snapshot = history.snapshots.get(ref.snapshot_id)
        if name == MAIN or snapshot is None:
            continue
        is_branch = ref.snapshot_ref_type.value == "branch"
        refs.append(RefHealth(name, is_branch, ref.snapshot_id, snapshot.committed_at))
    return tuple(sorted(refs, key=lambda ref: ref.name))
