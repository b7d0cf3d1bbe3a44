"""Where a new table's files come to lie: in a folder of its own, so that one that is dropped and
made again shares none with its past; where each catalog of Iceberg's own puts it.
"""

from lakehouse.iceberg.metadata.catalog import Catalog


def create_namespace(catalog: Catalog, namespace: str) -> None:
    """Create a namespace, unless it is there."""
    client = catalog.client
    try:
        client.create_namespace_if_not_exists(namespace)
    except Exception:
        # Of two at once, the embedded catalog tells the second one of its index.
        if not client.namespace_exists(namespace):
            raise


def new_location(catalog: Catalog, table: str, ending: str) -> str:
    """Return a location for a table, whose namespace is there.

    :param ending: what no other table of its name has, such as the hex digits of a UUID.
    """
    namespace, _, name = table.rpartition(".")
    folder = catalog.client.load_namespace_properties(namespace).get("location")
    if not folder:
        suffix = ".db" if catalog.pyiceberg["type"] == "glue" else ""
        folder = f"{catalog.pyiceberg['warehouse']}/{namespace}{suffix}"
    return f"{folder.rstrip('/')}/{name}-{ending}"
