"""The table properties that follow a declaration, and no others: what somebody else set stays."""

import json

from lakehouse.tables.declaration import RowLevel
from lakehouse.tables.row_level import COPY_ON_WRITE
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.table_properties import table_properties

MANAGED_PROPERTY = "lakehouse.managed-properties"
"""Table property: the names of those that follow the declaration, so that others' are left
alone.
"""
DISTRIBUTION_PROPERTY = "write.distribution-mode"


def declared_properties(
    table: IcebergTable, row_level: RowLevel = COPY_ON_WRITE
) -> dict[str, str]:
    """Return the properties of a declaration that Iceberg keeps as such; the format version is
    none of them.

    :param row_level: how rows are changed where the declaration does not say.
    """
    properties = table_properties(table, row_level)
    del properties["format-version"]
    return properties


def managed_properties(table: IcebergTable) -> str:
    """Return the value of `MANAGED_PROPERTY`."""
    return json.dumps(sorted(declared_properties(table)))


def created_properties(table: IcebergTable) -> dict[str, str]:
    """Return the properties that a table is created with, whatever creates it."""
    return {**table_properties(table), MANAGED_PROPERTY: managed_properties(table)}
