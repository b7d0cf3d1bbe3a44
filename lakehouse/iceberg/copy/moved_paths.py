"""Which path a file of a table has once the table is at another place."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from lakehouse.iceberg.metadata.location_files import LOCATION_PROPERTIES, folder_key, path_key

_ELSEWHERE = "data/elsewhere"
_PLACES = (*LOCATION_PROPERTIES, "write.folder-storage.path")
"""Properties that have files written elsewhere than below the table's location."""


@dataclass(frozen=True)
class MovedPaths:
    """The location that a table has, and the one that it gets.

    A file keeps its path below the location. One that lies elsewhere comes below it, in a folder
    for each folder that it came from.
    """

    location: str
    new_location: str

    def of(self, path: str) -> str:
        """Return the path that a file gets, in whatever form its path is written."""
        key, folder = path_key(path), folder_key(self.location)
        if key.startswith(folder):
            return f"{self.new_location}/{key.removeprefix(folder)}"
        parent, _, name = key.rpartition("/")
        return f"{self.new_location}/{_ELSEWHERE}/{sha256(parent.encode()).hexdigest()}/{name}"

    def of_metadata_file(self, path: str) -> str:
        """Return the path that a metadata.json file gets, which is written uncompressed."""
        return self.of(path).replace(".gz.metadata.json", ".metadata.json")

    def of_properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return a table's properties without those that say where else its files are written."""
        return {name: value for name, value in properties.items() if name not in _PLACES}
