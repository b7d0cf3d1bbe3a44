"""Parts of table names: `silver.fruits` is in the namespace `silver`."""

from collections.abc import Iterable


def namespace_of(table: str) -> str:
    """Return the namespace of `namespace.table`; empty for a name without one."""
    return table.rpartition(".")[0]


def namespaces_of(tables: Iterable[str]) -> set[str]:
    """Return the namespaces of some tables."""
    return {namespace_of(table) for table in tables}
