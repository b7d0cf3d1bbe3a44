"""Files and folders of a table: where a new one is put, and what is in its location; no JVM."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from posixpath import basename, dirname
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.catalog import Catalog

if TYPE_CHECKING:
    from pyiceberg.table import Table


_TABLE_METADATA = ".metadata.json"
LOCATION_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path")
"""Table properties that put files outside of the table's location."""


@dataclass(frozen=True)
class LocationFile:
    """A file in a listing."""

    path: str
    size_bytes: int
    modified_at: datetime


def list_location(table: "Table") -> dict[str, LocationFile]:
    """Return the files in a table's location, by `path_key`."""
    return _list_files(table, table.location())


def locations(table: "Table") -> Iterator[str]:
    """Yield a table's location, and the locations in its properties."""
    yield table.location()
    for name in LOCATION_PROPERTIES:
        if name in table.properties:
            yield table.properties[name]


def list_metadata_folder(table: "Table") -> dict[str, LocationFile]:
    """Return all files in a table's metadata folder, by `path_key`."""
    return _list_files(table, dirname(table.metadata_location))


def lost_metadata_files(
    table: "Table", listed: Mapping[str, LocationFile]
) -> dict[str, LocationFile]:
    """Return the metadata.json files of a listing that are not in the table's log.

    They were left by failed commits, pruned from the log, or belong to a running commit.
    """
    logged = {basename(entry.metadata_file) for entry in table.metadata.metadata_log}
    logged.add(basename(table.metadata_location))
    orphans = {}
    for key, file in listed.items():
        # A folder can be written in several ways, but file names in it are unique.
        if is_table_metadata(key) and basename(key) not in logged:
            orphans[key] = file
    return orphans


def is_table_metadata(path: str) -> bool:
    """Whether a file is a metadata.json, by its name."""
    return _TABLE_METADATA in basename(path)


def metadata_of_another(table: "Table", paths: Iterable[str]) -> str:
    """Return the first metadata.json of another table in this location; empty without one.

    It is recognized by its folder, since that table need not be in the catalog.
    """
    own = {f"{folder_key(table.location())}metadata"}
    logged = [entry.metadata_file for entry in table.metadata.metadata_log]
    for path in (table.metadata_location, *logged):
        own.add(dirname(path_key(path)))
    for path in sorted(paths):
        if is_table_metadata(path) and dirname(path_key(path)) not in own:
            return path
    return ""


def _list_files(table: "Table", folder: str) -> dict[str, LocationFile]:
    """Return the files in a folder at any depth, by `path_key`, without hidden ones."""
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    scheme, netloc, path = PyArrowFileIO.parse_location(folder.rstrip("/"))
    io = table.io if isinstance(table.io, PyArrowFileIO) else PyArrowFileIO(table.io.properties)
    selector = FileSelector(path, recursive=True, allow_not_found=True)
    listed = {}
    for info in io.fs_by_scheme(scheme, netloc).get_file_info(selector):
        if info.type == FileType.File and not info.base_name.startswith("."):
            modified_at = datetime.fromtimestamp((info.mtime_ns or 0) / 1e9, tz=UTC)
            listed[info.path] = LocationFile(f"{scheme}://{info.path}", info.size, modified_at)
    return listed


def path_key(path: str) -> str:
    """Return a path in one form: `/a`, or bucket and key for any scheme of S3."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO.parse_location(path)[2]


def is_in_a_bucket(location: str) -> bool:
    """Whether a location is in S3."""
    return location.startswith(("s3://", "s3a://", "s3n://"))


def folder_key(location: str) -> str:
    """Return the common prefix of the `path_key` of all files below a location."""
    return f"{path_key(location).rstrip('/')}/"


def create_namespace(catalog: Catalog, namespace: str) -> None:
    """Create a namespace if it does not exist."""
    client = catalog.client
    try:
        client.create_namespace_if_not_exists(namespace)
    except Exception:
        # If two processes create it at the same time, the second one gets an index error.
        if not client.namespace_exists(namespace):
            raise


def new_location(catalog: Catalog, table: str, ending: str) -> str:
    """Return a location for a table, whose namespace exists.

    :param ending: a unique suffix, such as the hex digits of a UUID.
    """
    namespace, _, name = table.rpartition(".")
    folder = catalog.client.load_namespace_properties(namespace).get("location")
    if not folder:
        suffix = ".db" if catalog.pyiceberg["type"] == "glue" else ""
        folder = f"{catalog.pyiceberg['warehouse']}/{namespace}{suffix}"
    return f"{folder.rstrip('/')}/{name}-{ending}"
