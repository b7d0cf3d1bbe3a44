"""How healthy a table is, told by its metadata: files, deletes, snapshots, manifests, branches;
no JVM, no scan of data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any

SMALL_SHARE = 0.75
"""Share of the target size below which a data file is small; Iceberg's own bound for files that
are worth a rewrite (`min-file-size-bytes` of rewrite_data_files).
"""
MANIFEST_BYTES = 8 * 2**20
"""Iceberg's own size of a manifest (`commit.manifest.target-size-bytes`)."""


@dataclass(frozen=True)
class PartitionKey:
    """One partition: the spec that its files were written with, and a value for each field."""

    spec_id: int
    values: tuple[tuple[str, Any], ...] = ()
    """Name of the partition field and its value, in the order of the spec."""


@dataclass(frozen=True)
class PartitionHealth:
    """The files of one partition. Sizes are in bytes."""

    key: PartitionKey
    rows: int
    """Rows in data files; what delete files take off is `deleted_rows`."""
    data_files: int
    data_bytes: int
    small_files: int
    small_bytes: int
    delete_files: int = 0
    delete_bytes: int = 0
    deleted_rows: int = 0
    """Rows of its data files that its delete files take off; dangling ones take off none."""
    dangling_delete_files: int = 0
    """Delete files that delete from no file that there is."""
    newest_file_at: datetime | None = None
    """When the newest file was committed; None where its snapshot has expired."""
    files_digest: str = ""
    """A digest of the paths of data and delete files: the same set of files has the same."""

    def fewer_files(self, target_bytes: int) -> int:
        """Return how many data files there are less when the small ones are joined to files of
        this size; 0 for a lone one.
        """
        joined = max(1, ceil(self.small_bytes / target_bytes))
        return max(0, self.small_files - joined)


@dataclass(frozen=True)
class SnapshotPin:
    """What still needs a snapshot, and all that came after it where it is a watermark."""

    owner: str
    """As people know it: `tag month_end`, `branch experiment`, `watermark of silver.fruits`,
    `restore point before-migration`.
    """
    snapshot_id: int
    committed_at: datetime
    needs_later: bool = False
    """Whether the snapshots after it are needed too, as an incremental read does."""


@dataclass(frozen=True)
class RefHealth:
    """A branch or a tag."""

    name: str
    is_branch: bool
    snapshot_id: int
    committed_at: datetime
    """When its snapshot was committed."""


@dataclass(frozen=True)
class TableHealth:
    """The health of one table at one moment. Sizes are in bytes."""

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
    """When each kept snapshot was committed, oldest first."""
    manifests: int = 0
    manifest_bytes: int = 0
    metadata_json_bytes: int = 0
    """Size of the current metadata.json."""
    read_metadata_bytes: int = 0
    """Size of what is read to plan a scan: metadata.json and the current manifests."""
    metadata_bytes: int | None = None
    """Size of all files in the metadata folder, those of old snapshots too; None where the
    folder was not listed.
    """
    logged_metadata_files: int = 0
    """How many metadata.json files there are, the current one and those that its log names."""
    lost_metadata_files: tuple[str, ...] | None = None
    """metadata.json files in that folder that no log names; None where it was not listed. That
    of a commit under way is among them.
    """
    refs: tuple[RefHealth, ...] = ()
    """Branches and tags but main."""
    pins: tuple[SnapshotPin, ...] = ()
    """What pins old snapshots, oldest first."""

    @property
    def data_files(self) -> int:
        """How many data files there are."""
        return sum(partition.data_files for partition in self.partitions)

    @property
    def data_bytes(self) -> int:
        """Their size."""
        return sum(partition.data_bytes for partition in self.partitions)

    @property
    def rows(self) -> int:
        """Rows in data files, those that delete files take off too."""
        return sum(partition.rows for partition in self.partitions)

    @property
    def small_files(self) -> int:
        """How many data files are small."""
        return sum(partition.small_files for partition in self.partitions)

    @property
    def small_file_share(self) -> float:
        """Share of the data files that are small; 0 without files."""
        return self.small_files / self.data_files if self.data_files else 0.0

    @property
    def fewer_files(self) -> int:
        """How many data files joining the small ones of each partition would spare."""
        return sum(partition.fewer_files(self.target_bytes) for partition in self.partitions)

    @property
    def delete_files(self) -> int:
        """How many delete files there are; each deletion vector is one."""
        return sum(partition.delete_files for partition in self.partitions)

    @property
    def dangling_delete_files(self) -> int:
        """How many of them delete from no file that there is."""
        return sum(partition.dangling_delete_files for partition in self.partitions)

    @property
    def deleted_rows(self) -> int:
        """Rows in data files that delete files take off."""
        return sum(partition.deleted_rows for partition in self.partitions)

    @property
    def deleted_row_share(self) -> float:
        """Share of the rows in data files that delete files take off; 0 without rows."""
        return self.deleted_rows / self.rows if self.rows else 0.0

    @property
    def files_of_old_specs(self) -> int:
        """How many data files were written with another partition spec than today's."""
        return sum(
            partition.data_files
            for partition in self.partitions
            if partition.key.spec_id != self.default_spec_id
        )

    @property
    def needed_manifests(self) -> int:
        """How many manifests their size takes, one at least for each partition spec."""
        specs = {partition.key.spec_id for partition in self.partitions}
        return max(1, len(specs), ceil(self.manifest_bytes / MANIFEST_BYTES))
