"""Files of a table to copy: the manifests of all snapshots, their records, and live files."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import fastavro

from lakehouse.errors import TableDamaged
from lakehouse.iceberg.metadata.referenced_files import missing_paths, parse_metadata

if TYPE_CHECKING:
    from pyiceberg.table import Table


Record = dict[str, Any]
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
"""From Avro's specification."""
_SCHEMA, _CODEC = "avro.schema", "avro.codec"


def read_records(content: bytes) -> list[Record]:
    schema = json.loads(_read_header(BytesIO(content))["meta"][_SCHEMA])
    plain = json.dumps(_plain(schema)).encode()
    return list(fastavro.reader(BytesIO(_with_schema(content, plain))))  # type: ignore[arg-type]


def change_records(content: bytes, change: Callable[[Record], object]) -> bytes:
    """Return an Avro file whose records were changed in place."""
    records = read_records(content)
    for record in records:
        change(record)
    header = _read_header(BytesIO(content))
    meta = {name: value.decode() for name, value in header["meta"].items()}
    schema, codec = meta.pop(_SCHEMA), meta.pop(_CODEC, "null")
    written = BytesIO()
    fastavro.writer(
        written,
        _plain(json.loads(schema)),
        records,
        codec=codec,
        metadata=meta,
        sync_marker=header["sync"],
    )
    return _with_schema(written.getvalue(), schema.encode())


def _read_header(stream: BytesIO) -> Record:
    header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
    return dict(header)


def _with_schema(content: bytes, schema: bytes) -> bytes:
    """Return an Avro file with another schema in its header, for the same record bytes."""
    stream = BytesIO(content)
    header = _read_header(stream)
    header["meta"][_SCHEMA] = schema
    written = BytesIO()
    fastavro.schemaless_writer(written, _HEADER, header)
    written.write(stream.read())
    return written.getvalue()


def _plain(schema: Any) -> Any:
    """Return a schema without logical types, which would change the Python values."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if isinstance(schema, dict):
        kept = {name: part for name, part in schema.items() if name != "logicalType"}
        return {name: _plain(part) for name, part in kept.items()}
    return schema


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
