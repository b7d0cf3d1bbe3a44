"""Lists the tables of a catalog that other projects may share."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.catalog import Catalog


def tables_there(catalog: "Catalog", read_declared: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names of existing tables, declared or not.

    In Glue, which has all databases of an account: only namespaces of declared tables.

    :param read_declared: loads the declared names, which takes seconds; called only for a
        shared catalog. With an invalid declaration, all databases are listed.
    """
    if catalog.is_embedded:
        return catalog.tables()
    try:
        declared = read_declared()
    except LakehouseError:
        return catalog.tables()
    return catalog.tables(declared)
