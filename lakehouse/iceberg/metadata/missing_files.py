"""The files that readers of a table need and that are not there: deleted by hand, or lost with
a disk.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.manifests import read_manifests

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

_AT_ONCE = 16
"""How many files are asked for at a time; on S3 each takes some milliseconds."""


def missing_files(catalog: Catalog, table: str) -> list[str]:
    """Return the files of a table's current snapshot that are not there, the first ones of each
    kind first.

    Where a manifest is missing, what it lists cannot be told. The types of columns do not matter.

    :raises TableDamaged: when its metadata file is missing, or cannot be read.
    """
    loaded = catalog.load_for_files(table)
    snapshot = loaded.current_snapshot()
    if snapshot is None:
        return []
    if lists := missing_paths(loaded, [snapshot.manifest_list]):
        return lists
    manifests = read_manifests(loaded)
    gone = missing_paths(loaded, [manifest.manifest_path for manifest in manifests])
    there = [manifest for manifest in manifests if manifest.manifest_path not in gone]
    return gone + missing_paths(loaded, list(_listed(loaded, there)))


def _listed(table: "Table", manifests: "list[ManifestFile]") -> Iterator[str]:
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io):
            yield entry.data_file.file_path


def missing_paths(table: "Table", paths: Sequence[str]) -> list[str]:
    """Return those of some files of a table that are not there, in their order."""

    def is_there(path: str) -> bool:
        return table.io.new_input(path).exists()

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files") as pool:
        exists = pool.map(is_there, paths)
        return [path for path, is_found in zip(paths, exists, strict=True) if not is_found]
