"""The tables that commands list, of a catalog that may have those of others."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.catalog import Catalog


def tables_there(catalog: "Catalog", read_declared: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names of the tables that exist, declared or not; in Glue, which has the databases
    of a whole account, of the namespaces that declared tables are in.

    :param read_declared: names of the declared tables, which take seconds to load; asked only
        where the catalog is not of this home alone. Where a declaration is wrong, which the
        commands that need it say, all databases are listed.
    """
    if catalog.is_embedded:
        return catalog.tables()
    try:
        declared = read_declared()
    except LakehouseError:
        return catalog.tables()
    return catalog.tables(declared)
