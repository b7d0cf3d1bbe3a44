"""Paths of a table's files after its move to another location."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from lakehouse.iceberg.metadata.location_files import LOCATION_PROPERTIES, folder_key, path_key

_EXTERNAL_FOLDER = "data/elsewhere"
_PLACES = (*LOCATION_PROPERTIES, "write.folder-storage.path")
"""Properties that put files outside of the table's location."""


@dataclass(frozen=True)
class MovedPaths:
    """The old and the new location of a table.

    Files keep their path below the location. Files outside of it are moved into it, with one
    folder per original folder.
    """

    location: str
    new_location: str

    def of(self, path: str) -> str:
        """Return the new path of a file, from any form of its path."""
        key, folder = path_key(path), folder_key(self.location)
        if key.startswith(folder):
            return f"{self.new_location}/{key.removeprefix(folder)}"
        parent, _, name = key.rpartition("/")
        folder_hash = sha256(parent.encode()).hexdigest()
        return f"{self.new_location}/{_EXTERNAL_FOLDER}/{folder_hash}/{name}"

    def of_metadata_file(self, path: str) -> str:
        """Return the new path of a metadata.json file, which is written uncompressed."""
        return self.of(path).replace(".gz.metadata.json", ".metadata.json")

    def of_properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return a table's properties without those that put files outside of its location."""
        return {name: value for name, value in properties.items() if name not in _PLACES}
