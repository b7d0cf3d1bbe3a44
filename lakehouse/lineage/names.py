"""Names of runs and datasets according to OpenLineage's naming specification.

A dataset is named by its location, as in OpenLineage's Spark integration for Iceberg: `file` and
a path, or `s3://bucket` and a key. Its catalog name is an alias (`symlinks`).
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog


def run_id_of(write_id: str) -> str:
    """Return the run id of a write: a deterministic UUID."""
    return str(uuid5(NAMESPACE_OID, write_id))


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
