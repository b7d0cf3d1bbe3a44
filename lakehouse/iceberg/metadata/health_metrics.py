"""Health metrics of a table, from its metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any

from lakehouse.iceberg.metadata.small_files import fewer_files

MANIFEST_BYTES = 8 * 2**20
"""Iceberg's default of `commit.manifest.target-size-bytes`."""


@dataclass(frozen=True)
class PartitionKey:
    """One partition: the spec of its files, and a value for each field."""

    spec_id: int
    values: tuple[tuple[str, Any], ...] = ()
    """Name and value of each partition field, in the order of the spec."""


@dataclass(frozen=True)
class PartitionHealth:
    """The files of one partition. Sizes are in bytes."""

    key: PartitionKey
    rows: int
    """Rows in data files, including deleted ones; see `deleted_rows`."""
    data_files: int
    data_bytes: int
    small_files: int
    small_bytes: int
    delete_files: int = 0
    delete_bytes: int = 0
    deleted_rows: int = 0
    """Rows of its data files that live delete files delete."""
    dangling_delete_files: int = 0
    """Delete files that apply to no existing file."""
    newest_file_at: datetime | None = None
    """When the newest file was committed; None if its snapshot has expired."""
    files_digest: str = ""
    """Digest of the paths of all data and delete files."""

    def fewer_files(self, target_bytes: int) -> int:
        """Return the number of data files that compaction of small files would save."""
        return fewer_files(self.small_files, self.small_bytes, target_bytes)


@dataclass(frozen=True)
class SnapshotPin:
    """A reference that needs a snapshot, and for a watermark also all later snapshots."""

    owner: str
    """Name for messages, such as `tag month_end` or `watermark of silver.fruits`."""
    snapshot_id: int
    committed_at: datetime
    needs_later: bool = False
    """Whether later snapshots are also needed, as for an incremental read."""


@dataclass(frozen=True)
class RefHealth:
    name: str
    is_branch: bool
    snapshot_id: int
    committed_at: datetime
    """When its snapshot was committed."""


@dataclass(frozen=True)
class TableHealth:
    """The health of one table at one point in time. Sizes are in bytes."""

    table: str
    measured_at: datetime
    metadata_location: str
    snapshot_id: int | None
    format_version: int
    default_spec_id: int
    target_bytes: int
    partitions: tuple[PartitionHealth, ...] = ()
    file_sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of data files: `min`, `p10`, `median`, `p90`, `max`; empty without files."""
    snapshot_times: tuple[datetime, ...] = ()
    """Commit time of each retained snapshot, oldest first."""
    manifests: int = 0
    manifest_bytes: int = 0
    metadata_json_bytes: int = 0
    """Size of the current metadata.json."""
    metadata_bytes: int | None = None
    """Size of all files in the metadata folder; None if it was not listed."""
    lost_metadata_files: tuple[str, ...] | None = None
    """metadata.json files in that folder that are in no log; None if it was not listed.

    Includes the file of a commit in progress.
    """
    refs: tuple[RefHealth, ...] = ()
    """Branches and tags except main."""
    pins: tuple[SnapshotPin, ...] = ()
    """References to old snapshots, oldest first."""

    @property
    def data_files(self) -> int:
        return sum(partition.data_files for partition in self.partitions)

    @property
    def data_bytes(self) -> int:
        return sum(partition.data_bytes for partition in self.partitions)

    @property
    def rows(self) -> int:
        """Rows in data files, including deleted ones."""
        return sum(partition.rows for partition in self.partitions)

    @property
    def small_files(self) -> int:
        return sum(partition.small_files for partition in self.partitions)

    @property
    def small_file_share(self) -> float:
        """Share of the data files that are small; 0 without files."""
        return self.small_files / self.data_files if self.data_files else 0.0

    @property
    def fewer_files(self) -> int:
        """Number of data files that compaction of small files would save."""
        return sum(partition.fewer_files(self.target_bytes) for partition in self.partitions)

    @property
    def delete_files(self) -> int:
        """Number of delete files; each deletion vector counts as one."""
        return sum(partition.delete_files for partition in self.partitions)

    @property
    def dangling_delete_files(self) -> int:
        """Number of delete files that apply to no existing file."""
        return sum(partition.dangling_delete_files for partition in self.partitions)

    @property
    def deleted_rows(self) -> int:
        """Rows in data files that are deleted."""
        return sum(partition.deleted_rows for partition in self.partitions)

    @property
    def deleted_row_share(self) -> float:
        """Share of the rows in data files that are deleted; 0 without rows."""
        return self.deleted_rows / self.rows if self.rows else 0.0

    @property
    def files_of_old_specs(self) -> int:
        """Number of data files with another partition spec than the current one."""
        return sum(
            partition.data_files
            for partition in self.partitions
            if partition.key.spec_id != self.default_spec_id
        )

    @property
    def needed_manifests(self) -> int:
        """Number of manifests needed for their size, at least one per partition spec."""
        specs = {partition.key.spec_id for partition in self.partitions}
        return max(1, len(specs), ceil(self.manifest_bytes / MANIFEST_BYTES))
