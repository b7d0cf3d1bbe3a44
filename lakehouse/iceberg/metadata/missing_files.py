"""Files that the current snapshot of a table needs and that do not exist."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.manifests import read_manifests

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

_AT_ONCE = 16
"""Number of concurrent requests; on S3 each takes some milliseconds."""


def missing_files(catalog: Catalog, table: str) -> list[str]:
    """Return the missing files of a table's current snapshot, also with unsupported types.

    :raises TableDamaged: if its metadata file is missing or cannot be read.
    """
    loaded = catalog.load_for_files(table)
    snapshot = loaded.current_snapshot()
    if snapshot is None:
        return []
    if lists := missing_paths(loaded, [snapshot.manifest_list]):
        return lists
    manifests = read_manifests(loaded)
    missing = missing_paths(loaded, [manifest.manifest_path for manifest in manifests])
    existing = [manifest for manifest in manifests if manifest.manifest_path not in missing]
    return missing + missing_paths(loaded, list(_listed(loaded, existing)))


def _listed(table: "Table", manifests: "list[ManifestFile]") -> Iterator[str]:
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io):
            yield entry.data_file.file_path


def missing_paths(table: "Table", paths: Sequence[str]) -> list[str]:
    """Return the paths that do not exist, in order."""

    def is_there(path: str) -> bool:
        return table.io.new_input(path).exists()

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files") as pool:
        exists = pool.map(is_there, paths)
        return [path for path, is_found in zip(paths, exists, strict=True) if not is_found]
