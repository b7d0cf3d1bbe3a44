"""Where tables are that the project reads and does not declare, as others of the catalog write
them.
"""

from collections.abc import Collection
from contextlib import suppress

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.tables.table_names import namespace_of, namespaces_of


def undeclared_locations(
    catalog: Catalog, tables: Collection[str], declared: Collection[str]
) -> dict[str, str]:
    """Return where the metadata is of tables in namespaces in which nothing is declared.

    Each namespace is asked for by itself: in Glue one may be another's, whom not everybody may
    read. Of that nothing is returned; who looks at a table in it is told why.
    """
    locations: dict[str, str] = {}
    for namespace in sorted(namespaces_of(tables) - namespaces_of(declared)):
        of_namespace = [table for table in tables if namespace_of(table) == namespace]
        with suppress(Exception):
            locations |= catalog.metadata_locations(of_namespace)
    return locations
