"""Metadata locations of tables that the project reads but does not declare."""

from collections.abc import Collection
from contextlib import suppress

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.tables.table_names import namespace_of, namespaces_of


def undeclared_locations(
    catalog: Catalog, tables: Collection[str], declared: Collection[str]
) -> dict[str, str]:
    """Return the metadata locations of tables in namespaces without declared tables.

    Each namespace is queried separately, since access to a Glue database of another team may be
    denied. Then it is left out, and reading its tables reports the error.
    """
    locations: dict[str, str] = {}
    for namespace in sorted(namespaces_of(tables) - namespaces_of(declared)):
        of_namespace = [table for table in tables if namespace_of(table) == namespace]
        with suppress(Exception):
            locations |= catalog.metadata_locations(of_namespace)
    return locations
