"""What there is to copy of a table: the manifests of all its snapshots, and the files that are
live in any of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.errors import TableDamaged
from lakehouse.iceberg.copy.avro_records import Record, read_records
from lakehouse.iceberg.metadata.metadata_files import parse_metadata
from lakehouse.iceberg.metadata.missing_files import missing_paths

if TYPE_CHECKING:
    from pyiceberg.table import Table

POSITION_DELETES = 1
_STATISTICS = ("statistics", "partition-statistics")
_DELETED = 2
"""Status of an entry that tells of a file that went."""


@dataclass(frozen=True)
class SourceFile:
    """A file of a table, as its metadata tells of it."""

    path: str
    size_bytes: int
    format: str
    """In capitals, as manifests have it; empty of statistics."""
    is_rewritten: bool = False
    """Whether it names other files by path."""


@dataclass(frozen=True)
class SourceFiles:
    """All files of a table but its metadata.json files and manifest lists, by their paths."""

    manifests: list[str]
    files: dict[str, SourceFile]

    @property
    def size_bytes(self) -> int:
        """The size of all that is copied, without manifests."""
        return sum(file.size_bytes for file in self.files.values())


def read_metadata(table: "Table") -> dict[str, Any]:
    """Return a table's current metadata as it stands in its file, with what PyIceberg does not
    know.
    """
    return parse_metadata(table.metadata_location, read_bytes(table, table.metadata_location))


def find_source_files(table: "Table", metadata: dict[str, Any]) -> SourceFiles:
    """Read all manifests of a table.

    :raises TableDamaged: when one is missing.
    """
    files: dict[str, SourceFile] = {}
    manifests: dict[str, None] = {}
    for snapshot in metadata.get("snapshots") or []:
        for record in read_records(read_bytes(table, _manifest_list(table, snapshot))):
            manifests[record["manifest_path"]] = None
    for path in manifests:
        for file in _live_files(read_records(read_bytes(table, path))):
            files[file.path] = file
    for told in statistics(metadata):
        path = told["statistics-path"]
        files[path] = SourceFile(path, told["file-size-in-bytes"], "")
    return SourceFiles(list(manifests), files)


def without_lost_statistics(table: "Table", metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without the files of statistics that are not there: queries are planned
    without them too.
    """
    told = [file["statistics-path"] for file in statistics(metadata)]
    lost = set(missing_paths(table, told))
    if not lost:
        return metadata
    kept = dict(metadata)
    for kind in _STATISTICS:
        if files := metadata.get(kind):
            kept[kind] = [file for file in files if file["statistics-path"] not in lost]
    return kept


def first_missing(table: "Table", files: SourceFiles) -> str | None:
    """Return the path of a file that was found and is gone since; None where all are there."""
    return next(iter(missing_paths(table, [*files.manifests, *files.files])), None)


def statistics(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what metadata tells of each file of statistics; changes to it are changes to the
    metadata.
    """
    return [file for kind in _STATISTICS for file in metadata.get(kind) or []]


def read_bytes(table: "Table", path: str) -> bytes:
    """Read a file of a table.

    :raises TableDamaged: when it is not there.
    """
    try:
        with table.io.new_input(path).open() as stream:
            return stream.read()
    except FileNotFoundError as error:
        raise missing(table, path) from error


def missing(table: "Table", path: str) -> TableDamaged:
    """Return the error of a file that a table needs and that is not there."""
    return TableDamaged(
        f"{'.'.join(table.name())} cannot be copied: {path} is missing, which one of its"
        " snapshots needs.",
        next_step=(
            "Where upkeep just removed it with its snapshot, the same command copies the table as"
            " it is now; else put the file back from a backup, or expire that snapshot."
        ),
    )


def _manifest_list(table: "Table", snapshot: dict[str, Any]) -> str:
    path: str | None = snapshot.get("manifest-list")
    if path is None:
        raise TableDamaged(
            f"Snapshot {snapshot['snapshot-id']} of {'.'.join(table.name())} has no manifest list,"
            " as the first versions of Iceberg wrote them; expected one.",
            next_step="Let that snapshot expire, and copy the table then.",
        )
    return path


def _live_files(records: list[Record]) -> Iterator[SourceFile]:
    for record in records:
        if record["status"] == _DELETED:
            continue
        file = record["data_file"]
        yield SourceFile(
            file["file_path"],
            file["file_size_in_bytes"],
            file["file_format"].upper(),
            is_rewritten=file.get("content", 0) == POSITION_DELETES,
        )
