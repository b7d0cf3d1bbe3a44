"""Names of runs and datasets according to OpenLineage's naming specification.

A dataset is named by its location, as in OpenLineage's Spark integration for Iceberg: `file` and
a path, or `s3://bucket` and a key. Its catalog name is an alias (`symlinks`).
"""

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog

_WRITE_ID = re.compile(r"[0-9a-f]{32}")
_VERSION, _VARIANT = 7, 0b10


def run_id_of(write_id: str) -> str:
    """Return the run id of a write: a deterministic UUID, version 7 for ids of this package."""
    if not _WRITE_ID.fullmatch(write_id):
        return str(uuid5(NAMESPACE_OID, write_id))
    milliseconds, rest = int(write_id[:12], 16), int(write_id[12:], 16)
    # 12 and 62 of the remaining 80 bits.
    high, low = rest >> 68, rest & ((1 << 62) - 1)
    return str(
        UUID(int=milliseconds << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low)
    )


@dataclass(frozen=True)
class DatasetName:
    """Dataset name of a table by location, and its catalog name if it has one."""

    namespace: str
    name: str
    in_catalog: tuple[str, str] | None = None


@dataclass(frozen=True)
class DatasetNames:
    """Dataset names of a catalog's tables; caches locations."""

    catalog: Catalog
    region: str | None = None
    _known: dict[str, DatasetName] = field(default_factory=dict, init=False, repr=False)

    def of(self, table: str) -> DatasetName:
        """Return the dataset name of a table; a deleted table has only its catalog name."""
        if table not in self._known:
            try:
                location = self.catalog.load(table).location()
            except LakehouseError:
                return DatasetName(self.catalog.name, table)
            self._known[table] = DatasetName(
                *name_of_location(location), in_catalog=self._name_in_catalog(table)
            )
        return self._known[table]

    def _name_in_catalog(self, table: str) -> tuple[str, str] | None:
        address = self.catalog.pyiceberg.get("uri")
        if address:
            return address, table
        namespace, _, name = table.rpartition(".")
        client: Any = self.catalog.client
        account = client.glue.get_database(Name=namespace)["Database"].get("CatalogId")
        if not account or not self.region:
            return None
        return f"arn:aws:glue:{self.region}:{account}", f"table/{namespace}/{name}"


def name_of_location(location: str) -> tuple[str, str]:
    """Return the dataset namespace and name of a location."""
    scheme, _, rest = location.partition("://")
    if not rest or scheme == "file":
        return "file", location.removeprefix("file:").removeprefix("//")
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key
