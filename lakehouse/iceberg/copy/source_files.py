"""Files of a table to copy: the manifests of all snapshots, and their live files."""

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
_DELETED = 2
"""Status of an entry for a removed file."""


@dataclass(frozen=True)
class SourceFile:
    """A file of a table, from its metadata."""

    path: str
    size_bytes: int
    format: str
    """In upper case, as in manifests."""
    is_rewritten: bool = False
    """Whether it contains paths of other files."""


@dataclass(frozen=True)
class SourceFiles:
    """All files of a table by path, except metadata.json files and manifest lists."""

    manifests: list[str]
    files: dict[str, SourceFile]

    @property
    def size_bytes(self) -> int:
        """The size of the files without manifests."""
        return sum(file.size_bytes for file in self.files.values())


def read_metadata(table: "Table") -> dict[str, Any]:
    """Return a table's current metadata file, including fields that PyIceberg does not know."""
    return parse_metadata(table.metadata_location, read_bytes(table, table.metadata_location))


def find_source_files(table: "Table", metadata: dict[str, Any]) -> SourceFiles:
    """Read all manifests of a table.

    :raises TableDamaged: if one is missing.
    """
    files: dict[str, SourceFile] = {}
    manifests: dict[str, None] = {}
    for snapshot in metadata.get("snapshots") or []:
        for record in read_records(read_bytes(table, _manifest_list(table, snapshot))):
            manifests[record["manifest_path"]] = None
    for path in manifests:
        for file in _live_files(read_records(read_bytes(table, path))):
            files[file.path] = file
    return SourceFiles(list(manifests), files)


def first_missing(table: "Table", files: SourceFiles) -> str | None:
    """Return the path of a file that was removed meanwhile; None if all exist."""
    return next(iter(missing_paths(table, [*files.manifests, *files.files])), None)


def read_bytes(table: "Table", path: str) -> bytes:
    """Read a file of a table.

    :raises TableDamaged: if it does not exist.
    """
    try:
        with table.io.new_input(path).open() as stream:
            return stream.read()
    except FileNotFoundError as error:
        raise missing(table, path) from error


def missing(table: "Table", path: str) -> TableDamaged:
    """Return the error for a missing file that a table needs."""
    return TableDamaged(
        f"{'.'.join(table.name())} cannot be copied: {path}, which one of its snapshots needs,"
        " is missing.",
        next_step=(
            "Run the same command again, in case upkeep just expired the snapshot; otherwise"
            " restore the file from a backup, or expire that snapshot."
        ),
    )


def _manifest_list(table: "Table", snapshot: dict[str, Any]) -> str:
    path: str | None = snapshot.get("manifest-list")
    if path is None:
        raise TableDamaged(
            f"Snapshot {snapshot['snapshot-id']} of {'.'.join(table.name())} has no manifest list,"
            " as the first versions of Iceberg wrote them; expected one.",
            next_step="Expire that snapshot, and copy the table again.",
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
