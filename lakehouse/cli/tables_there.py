"""Lists the tables of a catalog that other projects may share."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.catalog import Catalog


def tables_there(catalog: "Catalog", read_declared: Callable[[], Iterable[str]]) -> list[str]:
    """Return the existing tables; in Glue, only in namespaces of declared tables, if valid."""
    if catalog.is_embedded:
        return catalog.tables()
    try:
        declared = read_declared()
    except LakehouseError:
        return catalog.tables()
    return catalog.tables(declared)
