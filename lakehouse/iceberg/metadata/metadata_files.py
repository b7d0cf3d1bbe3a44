"""The metadata files of a table, with their sizes."""

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.named_files import named_metadata

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class MetadataFile:
    """A file that the current metadata references."""

    kind: str
    """`table metadata`, `manifest list`, `manifest` or `statistics`."""
    path: str
    size_bytes: int


def metadata_files(engine: Engine, table: str) -> list[MetadataFile]:
    """Return the existing metadata files of all snapshots of a table, each once.

    :raises TableNotFound: if the catalog has no such table.
    """
    loaded = engine.catalog.load(table)
    files = {}
    for file in named_metadata(loaded):
        size_bytes = file.size_bytes
        if size_bytes is None:
            size_bytes = stored_size(loaded, file.path)
        if size_bytes is not None:
            files[file.path] = MetadataFile(file.kind, file.path, size_bytes)
    return list(files.values())


def parse_metadata(path: str, content: bytes) -> dict[str, Any]:
    """Parse a metadata.json file, which can be compressed."""
    import gzip

    parsed: dict[str, Any] = json.loads(gzip.decompress(content) if ".gz." in path else content)
    return parsed


def read_metadata_json(table: "Table", path: str) -> dict[str, Any]:
    """Return the content of a metadata.json file; empty if it is missing or incomplete."""
    try:
        with table.io.new_input(path).open() as stream:
            content = stream.read()
    except FileNotFoundError:
        # Another process can remove it after the listing.
        return {}
    try:
        parsed = parse_metadata(path, content)
    except (ValueError, EOFError, OSError, zlib.error):
        # A killed commit left a partial file.
        return {}
    return parsed if isinstance(parsed, dict) else {}


def stored_size(table: "Table", path: str) -> int | None:
    """Return the size of a file in bytes, by one request; None if it is missing."""
    file = table.io.new_input(path)
    return len(file) if file.exists() else None
