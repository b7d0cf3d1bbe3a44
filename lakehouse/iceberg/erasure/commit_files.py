"""Commits added and removed files of a branch or tag without entries of removed files; no JVM.

Iceberg retains the entries of removed files in manifests, with the bounds of their columns,
truncated to 16 characters. Neither expiry nor Spark's procedure rewrites a single manifest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakehouse.errors import ErasureFailed
from lakehouse.iceberg.catalog.pyiceberg_internals import commit_updates, delete_manifest_writer
from lakehouse.iceberg.metadata.manifests import read_manifests

if TYPE_CHECKING:
    from pyiceberg.io import OutputFile
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile, ManifestWriter
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.refs import SnapshotRef
    from pyiceberg.table.snapshots import Summary

_CODEC = "write.avro.compression-codec"


@dataclass(frozen=True)
class FileChange:
    """Added and removed files: data files and delete files."""

    added: "Sequence[DataFile]" = ()
    removed: "Sequence[DataFile]" = ()


def commit_files(
    table: "Table",
    ref: str,
    change: FileChange,
    properties: Mapping[str, str],
    *,
    operation: str,
    rewrites_manifests: bool,
) -> None:
    """Change the files of a branch or tag in one commit, and refresh the table.

    It is not retried: after another commit, the files to remove have to be searched again.

    :param operation: Iceberg's name: `delete`, `overwrite` or `replace`.
    :param rewrites_manifests: whether to rewrite all manifests with entries of removed files.
    :raises CommitFailedException: of PyIceberg, after another commit. The written files are
        orphans then, which a later step of the erasure removes.
    """
    commit = _Commit(table, ref, change, rewrites_manifests=rewrites_manifests)
    commit.run(operation, properties)


def has_removed_entries(table: "Table", snapshot_id: int) -> bool:
    """Return whether a manifest of a snapshot has entries of removed files."""
    return any(_has_removed(manifest) for manifest in read_manifests(table, snapshot_id))


def schema_of_spec(table: "Table", spec: "PartitionSpec") -> "Schema":
    """Return the newest schema with all source columns of a partition spec, including dropped
    ones. With another schema, PyIceberg writes manifests that Iceberg cannot read.

    :raises ErasureFailed: if the table has no such schema.
    """
    for schema in (table.schema(), *reversed(table.schemas().values())):
        if all(schema.find_column_name(field.source_id) for field in spec.fields):
            return schema
    name = ".".join(table.name())
    raise ErasureFailed(
        f"{name}: no manifest of its partition spec {spec.spec_id} can be written: no schema of the"
        f" table has all source columns of {', '.join(field.name for field in spec.fields)}.",
        next_step="Let Spark write the files of that spec again, by `CALL"
        f" ….system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))`;"
        " drop branches and tags that still have them; then run the erasure again.",
    )


def _has_removed(manifest: "ManifestFile") -> bool:
    # Manifests of format 1 can lack the count.
    return manifest.deleted_files_count != 0


@dataclass
class _Commit:
    table: "Table"
    ref_name: str
    change: FileChange
    rewrites_manifests: bool

    def __post_init__(self) -> None:
        self.id = self.table.metadata.new_snapshot_id()
        self._uuid = uuid4()
        self._numbers = count()
        self._removed_paths = frozenset(file.file_path for file in self.change.removed)

    @property
    def ref(self) -> "SnapshotRef":
        return self.table.metadata.refs[self.ref_name]

    def run(self, operation: str, properties: Mapping[str, str]) -> None:
        from pyiceberg.table.snapshots import Snapshot
        from pyiceberg.table.update import (
            AddSnapshotUpdate,
            AssertRefSnapshotId,
            AssertTableUUID,
            SetSnapshotRefUpdate,
        )

        metadata, ref = self.table.metadata, self.ref
        snapshot = Snapshot.model_validate(
            {
                "snapshot-id": self.id,
                "parent-snapshot-id": ref.snapshot_id,
                "manifest-list": self._write_manifest_list(),
                "sequence-number": metadata.next_sequence_number(),
                "summary": self._summary(operation, properties),
                "schema-id": self._schema_id(),
            }
        )
        set_ref = SetSnapshotRefUpdate.model_validate(
            {
                "ref-name": self.ref_name,
                "type": ref.snapshot_ref_type,
                "snapshot-id": self.id,
                "max-ref-age-ms": ref.max_ref_age_ms,
                "max-snapshot-age-ms": ref.max_snapshot_age_ms,
                "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            }
        )
        is_unmoved = {"ref": self.ref_name, "snapshot-id": ref.snapshot_id}
        commit_updates(
            self.table,
            updates=(AddSnapshotUpdate(snapshot=snapshot), set_ref),
            requirements=(
                AssertTableUUID(uuid=metadata.table_uuid),
                AssertRefSnapshotId.model_validate(is_unmoved),
            ),
        )

    def _schema_id(self) -> int:
        """Return the schema for time travel to the new snapshot: a tag shows its former columns;
        a branch is read and written with the table's schema.
        """
        metadata, ref = self.table.metadata, self.ref
        parent = metadata.snapshot_by_id(ref.snapshot_id)
        if ref.snapshot_ref_type != "tag" or parent is None or parent.schema_id is None:
            return metadata.current_schema_id
        return parent.schema_id

    def _write_manifest_list(self) -> str:
        from pyiceberg.manifest import write_manifest_list

        manifests = [*self._added_manifests(), *self._retained_manifests()]
        metadata = self.table.metadata
        output = self._new_file(f"snap-{self.id}-0-{self._uuid}.avro")
        with write_manifest_list(
            format_version=metadata.format_version,
            output_file=output,
            snapshot_id=self.id,
            parent_snapshot_id=self.ref.snapshot_id,
            sequence_number=metadata.next_sequence_number(),
            avro_compression=self._codec,
        ) as writer:
            if manifests:
                writer.add_manifests(manifests)
        return output.location

    def _added_manifests(self) -> "Iterator[ManifestFile]":
        from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

        kinds: dict[tuple[int, bool], list[ManifestEntry]] = {}
        for file in self.change.added:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=self.id, data_file=file
            )
            kinds.setdefault((file.spec_id, int(file.content) != 0), []).append(entry)
        for (spec_id, is_deletes), entries in kinds.items():
            yield self._write_manifest(spec_id, entries, is_deletes=is_deletes)

    def _retained_manifests(self) -> "Iterator[ManifestFile]":
        for manifest in read_manifests(self.table, self.ref.snapshot_id):
            is_clean = not (self.rewrites_manifests and _has_removed(manifest))
            if is_clean and not self._removed_paths:
                yield manifest
                continue
            entries = manifest.fetch_manifest_entry(self.table.io)
            remaining = [
                entry
                for entry in entries
                if entry.data_file.file_path not in self._removed_paths
            ]
            if is_clean and len(remaining) == len(entries):
                yield manifest
            elif remaining:
                is_deletes = int(manifest.content) != 0
                yield self._write_manifest(
                    manifest.partition_spec_id, remaining, is_deletes=is_deletes
                )

    def _write_manifest(
        self, spec_id: int, entries: "Sequence[ManifestEntry]", *, is_deletes: bool
    ) -> "ManifestFile":
        from pyiceberg.manifest import ManifestEntryStatus

        output = self._new_file(f"{self._uuid}-m{next(self._numbers)}.avro")
        with self._manifest_writer(spec_id, output, is_deletes=is_deletes) as writer:
            for entry in entries:
                if entry.snapshot_id == self.id and entry.status == ManifestEntryStatus.ADDED:
                    writer.add(entry)
                else:
                    writer.existing(entry)
        return writer.to_manifest_file()

    def _manifest_writer(
        self, spec_id: int, output: "OutputFile", *, is_deletes: bool
    ) -> "ManifestWriter":
        from pyiceberg.manifest import write_manifest

        metadata = self.table.metadata
        spec = metadata.specs()[spec_id]
        schema = schema_of_spec(self.table, spec)
        if is_deletes:
            return delete_manifest_writer(spec, schema, output, self.id, self._codec)
        return write_manifest(
            metadata.format_version, spec, schema, output, self.id, self._codec
        )

    def _summary(self, operation: str, properties: Mapping[str, str]) -> "Summary":
        from pyiceberg.table.snapshots import (
            Operation,
            SnapshotSummaryCollector,
            Summary,
            update_snapshot_summaries,
        )

        metadata = self.table.metadata
        # Partition values can be personal.
        collected = SnapshotSummaryCollector(partition_summary_limit=0)
        for files, collect in (
            (self.change.added, collected.add_file),
            (self.change.removed, collected.remove_file),
        ):
            for file in files:
                spec = metadata.specs()[file.spec_id]
                collect(file, schema_of_spec(self.table, spec), spec)
        parent = metadata.snapshot_by_id(self.ref.snapshot_id)
        # PyIceberg computes no totals for `replace`.
        totals = update_snapshot_summaries(
            Summary(operation=Operation.OVERWRITE, **collected.build(), **properties),
            parent.summary if parent else None,
        )
        return Summary(operation=Operation(operation), **totals.additional_properties)

    @property
    def _codec(self) -> Any:
        return self.table.properties.get(_CODEC, "gzip")

    def _new_file(self, name: str) -> "OutputFile":
        path = self.table.location_provider().new_metadata_location(name)
        return self.table.io.new_output(path)
