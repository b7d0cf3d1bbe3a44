"""The table properties that follow a declaration, and no others: what somebody else set stays."""

import json

from lakehouse.tables.table import IcebergTable
from lakehouse.tables.table_properties import table_properties

MANAGED_PROPERTY = "lakehouse.managed-properties"
"""Table property: the names of those that follow the declaration, so that others' are left
alone.
"""
DISTRIBUTION_PROPERTY = "write.distribution-mode"


def declared_properties(table: IcebergTable) -> dict[str, str]:
    """Return the properties of a declaration that Iceberg keeps as such; the format version is
    none of them.
    """
    properties = table_properties(table)
    del properties["format-version"]
    return properties


def managed_properties(table: IcebergTable) -> str:
    """Return the value of `MANAGED_PROPERTY`."""
    return json.dumps(sorted(declared_properties(table)))


def created_properties(table: IcebergTable) -> dict[str, str]:
    """Return the properties that a table is created with, whatever creates it."""
    return {**table_properties(table), MANAGED_PROPERTY: managed_properties(table)}
