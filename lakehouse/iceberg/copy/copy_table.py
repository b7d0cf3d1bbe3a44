"""One table with its snapshots, tags and branches to another catalog; registered once its rows
were seen to be the same, so that nobody sees a part of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.copy.left_over import Bucket, find_left_over, remove_left_over
from lakehouse.iceberg.copy.moved_deletes import MovedDeletes, moved_deletes
from lakehouse.iceberg.copy.moved_metadata import (
    moved_manifest,
    moved_manifest_list,
    moved_metadata,
)
from lakehouse.iceberg.copy.moved_paths import MovedPaths
from lakehouse.iceberg.copy.row_checksum import (
    RowChecksum,
    has_readable_rows,
    row_checksum,
)
from lakehouse.iceberg.copy.source_files import (
    SourceFiles,
    find_source_files,
    first_missing,
    missing,
    read_bytes,
    read_metadata,
    without_lost_statistics,
)
from lakehouse.iceberg.copy.write_files import FileCopier, Progress
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.location_files import folder_key, path_key
from lakehouse.iceberg.metadata.manifests import read_files
from lakehouse.iceberg.metadata.metadata_files import parse_metadata
from lakehouse.iceberg.metadata.missing_files import missing_paths
from lakehouse.iceberg.metadata.new_location import create_namespace, new_location
from lakehouse.tables.table_names import namespace_of

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

VerifiedBy = Literal["rows", "bytes"]
Report = Callable[[str], None]
"""Is told in how far a table is copied."""


@dataclass(frozen=True)
class TableCopy:
    """A table that was copied. `rows` and `checksum` are of main."""

    table: str
    rows: int
    checksum: str
    snapshots: int
    files: int
    size_bytes: int
    verified_by: VerifiedBy
    """`bytes` where PyIceberg cannot read the rows: where a file is of Avro, or rows are deleted by
    their values. Then the bytes of each file were compared.
    """


def copy_table(
    source: "Table",
    name: str,
    target: Catalog,
    report: Report,
    check: Callable[[], None] = lambda: None,
    *,
    bucket: Bucket | None = None,
) -> TableCopy:
    """Copy a table as it was when it was loaded; what another process committed to it since is
    left out.

    The place is told by the table's UUID, so that a copy that was killed goes on where it was.

    :param report: is told in how far it is done.
    :param check: raises where the table is not to be registered; called just before it is.
    :param bucket: in which the target's tables lie; None of a home.
    :raises TableDamaged: when a file is missing that a snapshot needs.
    :raises LakehouseError: when the rows at the new place are others, another process registered
        a table of that name meanwhile, or a table lies where this one would come to.
    """
    create_namespace(target, namespace_of(name))
    location = new_location(target, name, source.metadata.table_uuid.hex)
    _require_free(target, name, location)
    copier = FileCopier(
        source, _open_io(target, location), MovedPaths(source.location(), location)
    )
    report("reading its manifests")
    metadata = without_lost_statistics(source, _without_writes(read_metadata(source)))
    files = find_source_files(source, metadata)
    moved = copier.copy(files.files.values(), _told(files, report))
    report("writing its metadata")
    written = _write_metadata(copier, metadata, files, moved)
    copied = target.open_at(written[-1])
    report("comparing rows")
    verified_by, checksum = _verify(source, copied, name, copier.paths, files)
    left_over = find_left_over(copied, [*map(copier.paths.of, files.files), *written])
    _require_free(target, name, location)
    check()
    _register(target, name, written[-1])
    # Nothing that was registered names it.
    remove_left_over(copied, left_over, bucket)
    return TableCopy(
        table=name,
        rows=checksum.rows,
        checksum=checksum.text,
        snapshots=len(metadata.get("snapshots") or []),
        files=len(files.files),
        size_bytes=files.size_bytes,
        verified_by=verified_by,
    )


def main_checksum(table: "Table") -> tuple[VerifiedBy, RowChecksum]:
    """Return the sum of the rows that main has; of a table without a snapshot that of none."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return "rows", RowChecksum(0, 0)
    return _checksum(table, snapshot.snapshot_id, None)


def _require_free(target: Catalog, name: str, location: str) -> None:
    """Make sure that no table lies at a location: it would lose the files that are not of the
    copy. One that was copied there before and renamed does, since its files stay where they are.
    """
    folder = folder_key(location)
    # Of all namespaces: it may have been renamed to one in which nothing is declared.
    for other, metadata_location in target.metadata_locations().items():
        if path_key(metadata_location).startswith(folder):
            raise LakehouseError(
                f"{name} cannot be copied to {location}: {other} lies there, as a copy before or"
                " another process made it; expected no table there.",
                next_step=(
                    f"Run the same command again where another one copies {name} at this moment."
                    f" Else rename {other} back to {name}, or drop it once its rows are elsewhere."
                ),
            )


def _without_writes(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without the branches of writes that go on, which end elsewhere."""
    refs = metadata.get("refs") or {}
    return metadata | {"refs": {name: ref for name, ref in refs.items() if not is_audit(name)}}


def _told(files: SourceFiles, report: Report) -> Progress:
    total_bytes = max(1, files.size_bytes)

    def tell(done: int, done_bytes: int) -> None:
        share = 100 * done_bytes // total_bytes
        report(f"{done} of {len(files.files)} files, {share} % of the bytes")

    return tell


def _write_metadata(
    copier: FileCopier,
    metadata: dict[str, Any],
    files: SourceFiles,
    moved: Mapping[str, MovedDeletes],
) -> list[str]:
    """Write what names files, what names it after it; return the paths, last that of the current
    metadata.
    """
    source, paths, written = copier.source, copier.paths, []
    lengths = {}
    for path in files.manifests:
        manifest = moved_manifest(read_bytes(source, path), paths, moved)
        lengths[path] = len(manifest)
        copier.write(paths.of(path), manifest)
        written.append(paths.of(path))
    for snapshot in metadata.get("snapshots") or []:
        path = snapshot["manifest-list"]
        content = moved_manifest_list(read_bytes(source, path), paths, lengths)
        copier.write(paths.of(path), content)
        written.append(paths.of(path))
    metadata["metadata-log"] = _log(source, metadata)
    for entry in metadata["metadata-log"]:
        path = entry["metadata-file"]
        earlier = parse_metadata(path, read_bytes(source, path))
        copier.write(paths.of_metadata_file(path), moved_metadata(earlier, paths))
        written.append(paths.of_metadata_file(path))
    path = paths.of_metadata_file(source.metadata_location)
    copier.write(path, moved_metadata(metadata, paths))
    return [*written, path]


def _log(source: "Table", metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of the log whose files are there."""
    logged = metadata.get("metadata-log") or []
    lost = set(missing_paths(source, [entry["metadata-file"] for entry in logged]))
    return [entry for entry in logged if entry["metadata-file"] not in lost]


def _open_io(target: Catalog, location: str) -> "FileIO":
    """Return what reads and writes files at a location of a catalog."""
    from pyiceberg.io import load_file_io

    return load_file_io(dict(target.client.properties), location)


def _verify(
    source: "Table", copied: "Table", name: str, paths: MovedPaths, files: SourceFiles
) -> tuple[VerifiedBy, RowChecksum]:
    """Compare the rows of main, and of each tag and branch that has others; return the sum of
    main's.
    """
    kind, main = main_checksum(copied)
    refs = {ref.snapshot_id: label for label, ref in copied.metadata.refs.items()}
    for snapshot_id, label in refs.items():
        is_main = snapshot_id == copied.metadata.current_snapshot_id
        found = main if is_main else _checksum(copied, snapshot_id, None)[1]
        try:
            expected = _checksum(source, snapshot_id, paths)[1]
        except FileNotFoundError as error:
            raise missing(source, first_missing(source, files) or str(error)) from error
        if found != expected:
            raise LakehouseError(
                f"{name} was not copied: at the new place {label} has {found.rows} rows with"
                f" checksum {found.text}; expected {expected.rows} with {expected.text}.",
                next_step="Nothing was registered. Look after the disks, and run it again.",
            )
    return kind, main


def _checksum(
    table: "Table", snapshot_id: int, paths: MovedPaths | None
) -> tuple[VerifiedBy, RowChecksum]:
    if has_readable_rows(table, snapshot_id):
        return "rows", row_checksum(table, snapshot_id)
    return "bytes", _byte_checksum(table, snapshot_id, paths)


def _byte_checksum(table: "Table", snapshot_id: int, paths: MovedPaths | None) -> RowChecksum:
    """Sum up the bytes of the files of a snapshot; its rows are those of its data files, those
    that are deleted among them.

    :param paths: of the source, so that files are taken as the new place is to have them.
    """
    rows, total = 0, 0
    for file in read_files(table, snapshot_id):
        if file.content == "data":
            rows += file.record_count
        name, content = file.path, read_bytes(table, file.path)
        if paths:
            name = paths.of(file.path)
            if file.content == "position deletes":
                deletes = moved_deletes(file.path, file.format.upper(), content, paths.of)
                content = deletes.content
        digest = sha256(path_key(name).encode() + content).digest()
        total += int.from_bytes(digest[:8], "big")
    return RowChecksum(rows, total % (1 << 64))


def _register(target: Catalog, name: str, metadata_location: str) -> None:
    from pyiceberg.exceptions import TableAlreadyExistsError

    try:
        target.client.register_table(name, metadata_location)
    except TableAlreadyExistsError as error:
        raise LakehouseError(
            f"{name} was made at {target.place} by another process meanwhile; expected none.",
            next_step="Run the same command again: it says whether that has the same rows.",
        ) from error
