"""Copy one table with its snapshots, tags and branches; no JVM."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.copy.files_to_copy import (
    SourceFile,
    SourceFiles,
    find_source_files,
    first_missing,
    missing,
    read_bytes,
    read_metadata,
)
from lakehouse.iceberg.copy.moved_files import (
    MovedDeletes,
    MovedPaths,
    moved_deletes,
    moved_manifest,
    moved_manifest_list,
    moved_metadata,
)
from lakehouse.iceberg.metadata.manifests import read_files
from lakehouse.iceberg.metadata.referenced_files import missing_paths, parse_metadata
from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads
from lakehouse.iceberg.metadata.table_locations import (
    create_namespace,
    folder_key,
    new_location,
    path_key,
)
from lakehouse.tables.quoting import namespace_of

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table


_AT_ONCE = 8
_CHUNK_BYTES = 8 << 20
Progress = Callable[[int, int], None]
"""Called with the number of copied files and their bytes."""


@dataclass(frozen=True)
class FileCopier:
    """Copies the files of one table."""

    source: "Table"
    io: "FileIO"
    """FileIO of the target."""
    paths: MovedPaths
    _is_cancelled: Event = field(default_factory=Event, init=False, repr=False)

    def copy(self, files: Iterable[SourceFile], progress: Progress) -> dict[str, MovedDeletes]:
        """Copy files concurrently; return the rewritten delete files, by path.

        :raises TableDamaged: if a file is missing.
        """
        moved: dict[str, MovedDeletes] = {}
        done_bytes = 0
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="copy")
        futures = {pool.submit(self._copy_one, file): file for file in files}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                file, deletes = futures[future], future.result()
                if deletes is not None:
                    moved[file.path] = deletes
                done_bytes += file.size_bytes
                progress(done, done_bytes)
        finally:
            # Stop copies of large files after Ctrl-C or an error.
            self._is_cancelled.set()
            pool.shutdown(cancel_futures=True)
        return moved

    def write(self, path: str, content: bytes) -> None:
        with self.io.new_output(path).create(overwrite=True) as stream:
            stream.write(content)

    def _copy_one(self, file: SourceFile) -> MovedDeletes | None:
        new_path = self.paths.of(file.path)
        if file.is_rewritten:
            content = read_bytes(self.source, file.path)
            moved = moved_deletes(file.path, file.format, content, self.paths.of)
            self.write(new_path, moved.content)
            return moved
        existing = self.io.new_input(new_path)
        if not existing.exists() or len(existing) != file.size_bytes:
            self._stream(file, new_path)
        return None

    def _stream(self, file: SourceFile, new_path: str) -> None:
        written_bytes = 0
        with self.io.new_output(new_path).create(overwrite=True) as stream:
            for chunk in self._chunks(file.path):
                written_bytes += len(chunk)
                stream.write(chunk)
        if written_bytes != file.size_bytes:
            raise LakehouseError(
                f"{file.path} has {written_bytes} bytes; expected {file.size_bytes}, as in"
                " the table's metadata.",
                next_step="`lakehouse doctor` checks the files of all tables.",
            )

    def _chunks(self, path: str) -> Iterator[bytes]:
        try:
            opened = self.source.io.new_input(path).open(seekable=False)
        except FileNotFoundError as error:
            raise missing(self.source, path) from error
        with opened as stream:
            while not self._is_cancelled.is_set() and (chunk := stream.read(_CHUNK_BYTES)):
                yield chunk


@dataclass(frozen=True)
class RowChecksum:
    """The row count and the checksum of a snapshot."""

    rows: int
    total: int

    @property
    def text(self) -> str:
        return f"{self.total:016x}"


def row_checksum(table: "Table", snapshot_id: int) -> RowChecksum:
    """Return the sum of the hashes of all rows of a snapshot, modulo 2^64."""
    import pyarrow as pa
    from pandas.util import hash_pandas_object

    rows, total = 0, 0
    with table.scan(snapshot_id=snapshot_id).to_arrow_batch_reader() as batches:
        for batch in batches:
            columns = {}
            for number, column in enumerate(batch.columns):
                columns[f"{number}"] = _hashable(column)
                columns[f"{number} is NULL"] = column.is_null()
            frame = pa.table(columns).to_pandas()
            hashes = hash_pandas_object(frame, index=False, categorize=False)
            rows += batch.num_rows
            total += int(hashes.sum())
    return RowChecksum(rows, total % (1 << 64))


def _hashable(column: Any) -> Any:
    """Return an Arrow array without NULL in a type that pandas hashes without loss."""
    import pyarrow as pa

    kind, storage = pa.types, column.type
    if isinstance(column, pa.ExtensionArray):
        column, storage = column.storage, column.storage.type
    if kind.is_nested(storage):
        texts = [repr(value).encode() for value in column.to_pylist()]
        column = pa.array(texts, pa.large_binary())
    elif kind.is_decimal(storage):
        column = column.cast(pa.string()).cast(pa.large_binary())
    elif kind.is_temporal(storage):
        column = column.view(pa.int32() if storage.bit_width == 32 else pa.int64())
    elif kind.is_boolean(storage):
        column = column.cast(pa.int8())
    elif not kind.is_primitive(storage):
        column = column.cast(pa.large_binary())
    return column.fill_null(0 if kind.is_primitive(column.type) else b"")


VerifiedBy = Literal["rows", "bytes"]
Report = Callable[[str], None]
"""Called with a progress message."""


@dataclass(frozen=True)
class TableCopy:
    """A copied table. `rows` and `checksum` are of main."""

    table: str
    rows: int
    checksum: str
    snapshots: int
    files: int
    size_bytes: int
    verified_by: VerifiedBy
    """`bytes` if only Spark reads the rows; then file contents were compared."""


def copy_table(
    source: "Table",
    name: str,
    target: Catalog,
    report: Report,
    check: Callable[[], None] = lambda: None,
) -> TableCopy:
    """Copy a table in its loaded state, without later commits of other processes.

    The target location contains the table's UUID, so that a killed copy continues.

    :param report: called with progress messages.
    :param check: called just before the table is registered; raises to prevent it.
    :raises TableDamaged: if a file that a snapshot needs is missing.
    :raises LakehouseError: if the rows at the target differ, another process registered the
        table meanwhile, or another table is in the target location.
    """
    from pyiceberg.io import load_file_io

    create_namespace(target, namespace_of(name))
    location = new_location(target, name, source.metadata.table_uuid.hex)
    _require_free(target, name, location)
    io = load_file_io(dict(target.client.properties), location)
    copier = FileCopier(source, io, MovedPaths(source.location(), location))
    report("reading its manifests")
    metadata = read_metadata(source)
    refs = metadata.get("refs") or {}
    # Without the branches of running writes.
    metadata["refs"] = {name: ref for name, ref in refs.items() if not is_audit(name)}
    files = find_source_files(source, metadata)
    moved = copier.copy(files.files.values(), _progress(files, report))
    report("writing its metadata")
    metadata_location = _write_metadata(copier, metadata, files, moved)
    copied = target.open_at(metadata_location)
    report("comparing rows")
    verified_by, checksum = _verify(source, copied, name, copier.paths, files)
    _require_free(target, name, location)
    check()
    _register(target, name, metadata_location)
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
    """Return the checksum of main's rows; that of no rows for a table without a snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return "rows", RowChecksum(0, 0)
    return _checksum(table, snapshot.snapshot_id, None)


def _require_free(target: Catalog, name: str, location: str) -> None:
    """Check that a location has no table, such as a renamed copy, which would lose files."""
    folder = folder_key(location)
    # All namespaces are checked, since it can have been renamed to one without declarations.
    for other, metadata_location in target.metadata_locations().items():
        if path_key(metadata_location).startswith(folder):
            raise LakehouseError(
                f"{name} cannot be copied to {location}: {other} is there, created by an earlier"
                " copy or another process; expected no table there.",
                next_step=(
                    f"Run the same command again if another process is copying {name}."
                    f" Otherwise rename {other} back to {name}, or drop it after copying its rows."
                ),
            )


def _progress(files: SourceFiles, report: Report) -> Progress:
    total_bytes = max(1, files.size_bytes)

    def report_share(done: int, done_bytes: int) -> None:
        share = 100 * done_bytes // total_bytes
        report(f"{done} of {len(files.files)} files, {share} % of the bytes")

    return report_share


def _write_metadata(
    copier: FileCopier,
    metadata: dict[str, Any],
    files: SourceFiles,
    moved: Mapping[str, MovedDeletes],
) -> str:
    """Write all metadata, files that others reference first; return the current path."""
    source, paths = copier.source, copier.paths
    lengths = {}
    for path in files.manifests:
        manifest = moved_manifest(read_bytes(source, path), paths, moved)
        lengths[path] = len(manifest)
        copier.write(paths.of(path), manifest)
    for snapshot in metadata.get("snapshots") or []:
        path = snapshot["manifest-list"]
        content = moved_manifest_list(read_bytes(source, path), paths, lengths)
        copier.write(paths.of(path), content)
    metadata["metadata-log"] = _log(source, metadata)
    for entry in metadata["metadata-log"]:
        path = entry["metadata-file"]
        earlier = parse_metadata(path, read_bytes(source, path))
        copier.write(paths.of_metadata_file(path), moved_metadata(earlier, paths))
    path = paths.of_metadata_file(source.metadata_location)
    copier.write(path, moved_metadata(metadata, paths))
    return path


def _log(source: "Table", metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    logged = metadata.get("metadata-log") or []
    missing_files = set(missing_paths(source, [entry["metadata-file"] for entry in logged]))
    return [entry for entry in logged if entry["metadata-file"] not in missing_files]


def _verify(
    source: "Table", copied: "Table", name: str, paths: MovedPaths, files: SourceFiles
) -> tuple[VerifiedBy, RowChecksum]:
    """Compare the rows of main and of all other refs; return main's checksum."""
    kind, main = main_checksum(copied)
    refs = {ref.snapshot_id: label for label, ref in copied.metadata.refs.items()}
    for snapshot_id, label in refs.items():
        is_main = snapshot_id == copied.metadata.current_snapshot_id
        actual = main if is_main else _checksum(copied, snapshot_id, None)[1]
        try:
            expected = _checksum(source, snapshot_id, paths)[1]
        except FileNotFoundError as error:
            raise missing(source, first_missing(source, files) or str(error)) from error
        if actual != expected:
            raise LakehouseError(
                f"{name} was not copied: at the target {label} has {actual.rows} rows with"
                f" checksum {actual.text}; expected {expected.rows} with {expected.text}.",
                next_step="Nothing was registered. Check the disks, and run it again.",
            )
    return kind, main


def _checksum(
    table: "Table", snapshot_id: int, paths: MovedPaths | None
) -> tuple[VerifiedBy, RowChecksum]:
    if not why_only_spark_reads(table, snapshot_id):
        return "rows", row_checksum(table, snapshot_id)
    return "bytes", _byte_checksum(table, snapshot_id, paths)


def _byte_checksum(table: "Table", snapshot_id: int, paths: MovedPaths | None) -> RowChecksum:
    """Return the checksum of the files of a snapshot, and the rows of its data files.

    :param paths: for the source, so that its files are hashed in their target form.
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
            f"{name} was created in {target.place} by another process meanwhile; expected none.",
            next_step="Run the same command again: it compares the rows.",
        ) from error
