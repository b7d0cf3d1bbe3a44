"""The metadata files of a table, with their sizes: what a table keeps beside its data."""

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
    """A file that the current metadata refers to."""

    kind: str
    """`table metadata`, `manifest list`, `manifest` or `statistics`."""
    path: str
    size_bytes: int


def metadata_files(engine: Engine, table: str) -> list[MetadataFile]:
    """Return the metadata files of a table, of all its snapshots; a file that several share is
    there once, and one that was deleted by hand is left out.

    :raises TableNotFound: when the catalog has no such table.
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
    """Return what a metadata.json file holds."""
    import gzip

    parsed: dict[str, Any] = json.loads(gzip.decompress(content) if ".gz." in path else content)
    return parsed


def read_if_whole(table: "Table", path: str) -> dict[str, Any]:
    """Return what a metadata.json file of a table's folder holds; nothing of one that is gone or
    cannot be read.
    """
    try:
        with table.io.new_input(path).open() as stream:
            content = stream.read()
    except FileNotFoundError:
        # Another host may have removed it since it was listed.
        return {}
    try:
        parsed = parse_metadata(path, content)
    except (ValueError, EOFError, OSError, zlib.error):
        # A commit that was killed left a part of it.
        return {}
    return parsed if isinstance(parsed, dict) else {}


def stored_size(table: "Table", path: str) -> int | None:
    """Return the size in bytes of a file, which is asked for by itself; None of one that is
    gone.
    """
    file = table.io.new_input(path)
    return len(file) if file.exists() else None
