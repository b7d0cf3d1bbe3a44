"""Location of a new table: unique, so that it shares no files with a dropped one."""

from lakehouse.iceberg.metadata.catalog import Catalog


def create_namespace(catalog: Catalog, namespace: str) -> None:
    """Create a namespace if it does not exist."""
    client = catalog.client
    try:
        client.create_namespace_if_not_exists(namespace)
    except Exception:
        # If two processes create it at the same time, the second one gets an index error.
        if not client.namespace_exists(namespace):
            raise


def new_location(catalog: Catalog, table: str, ending: str) -> str:
    """Return a location for a table, whose namespace exists.

    :param ending: a unique suffix, such as the hex digits of a UUID.
    """
    namespace, _, name = table.rpartition(".")
    folder = catalog.client.load_namespace_properties(namespace).get("location")
    if not folder:
        suffix = ".db" if catalog.pyiceberg["type"] == "glue" else ""
        folder = f"{catalog.pyiceberg['warehouse']}/{namespace}{suffix}"
    return f"{folder.rstrip('/')}/{name}-{ending}"
