"""Table properties that follow the declaration; others are not changed."""

import json

from lakehouse.tables.declaration import RowLevel
from lakehouse.tables.row_level import COPY_ON_WRITE
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.table_properties import table_properties

MANAGED_PROPERTY = "lakehouse.managed-properties"
"""Table property: the names of properties that follow the declaration."""
DISTRIBUTION_PROPERTY = "write.distribution-mode"


def declared_properties(
    table: IcebergTable, row_level: RowLevel = COPY_ON_WRITE
) -> dict[str, str]:
    """Return the declared Iceberg properties, without the format version.

    :param row_level: the row-level mode if the declaration sets none.
    """
    properties = table_properties(table, row_level)
    del properties["format-version"]
    return properties


def managed_properties(table: IcebergTable) -> str:
    """Return the value of `MANAGED_PROPERTY`."""
    return json.dumps(sorted(declared_properties(table)))


def created_properties(table: IcebergTable) -> dict[str, str]:
    """Return the properties for the creation of a table."""
    return {**table_properties(table), MANAGED_PROPERTY: managed_properties(table)}
