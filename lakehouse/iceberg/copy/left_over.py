"""Remaining files of earlier copies of a table, and their removal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lakehouse.iceberg.metadata.location_files import (
    LocationFile,
    folder_key,
    list_location,
    path_key,
)
from lakehouse.storage.object_store import StoredObject

if TYPE_CHECKING:
    from pyiceberg.table import Table


class Bucket(Protocol):
    """The required methods of a bucket."""

    def uri(self, key: str) -> str:
        """Return the address of an object."""

    def all_versions(self, prefix: str) -> list[StoredObject]:
        """Return all object versions below a prefix."""

    def remove_versions(self, versions: Sequence[StoredObject]) -> None:
        """Delete object versions permanently."""


def find_left_over(copied: "Table", needed_paths: Iterable[str]) -> dict[str, LocationFile]:
    """Return the files in a table's location that are not needed, by `path_key`."""
    listed, needed = list_location(copied), set(map(path_key, needed_paths))
    return {key: file for key, file in listed.items() if key not in needed}


def remove_left_over(
    copied: "Table", files: Mapping[str, LocationFile], store: Bucket | None
) -> None:
    """Remove these files, with all versions in a versioned bucket.

    :param store: the bucket of the location; None if it is in none, or in another one.
    """
    folder = folder_key(copied.location())
    root = path_key(store.uri("")) if store else ""
    if store is None or not files or not folder.startswith(root):
        for file in files.values():
            copied.io.delete(file.path)
        return
    versions = store.all_versions(folder.removeprefix(root))
    store.remove_versions([version for version in versions if root + version.key in files])
