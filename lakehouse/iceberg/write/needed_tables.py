"""Check that the tables a write reads exist, before the written table is created."""

from collections.abc import Collection, Iterator, Mapping

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.table import IcebergTable


def require_needed(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    declared: Mapping[str, IcebergTable],
    sources: Mapping[str, Collection[str]],
) -> None:
    """Raise if an input, or a table that a rule reads, does not exist.

    :param declared: the project's tables, by name. In a cycle of references one table must be
        written first, so such references are not checked.
    :param sources: by table, the tables that it is computed from.
    :raises TableNotFound: names the first missing table.
    """
    own = (table.name, table.quarantine.name if table.quarantine else "")
    for name in (*(source.table for source in inputs.values()), *_in_rules(table)):
        if name in own or _reads_back(name, table, declared, sources):
            continue
        read_history(engine, name)


def _in_rules(table: IcebergTable) -> Iterator[str]:
    for rule in table.rules:
        yield from rule.read_columns


def _reads_back(
    name: str,
    table: IcebergTable,
    declared: Mapping[str, IcebergTable],
    sources: Mapping[str, Collection[str]],
) -> bool:
    """Whether another table or its rules read this one, directly or indirectly."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        other = declared.get(waiting.pop())
        if other is None or other.name in reached:
            continue
        reached.add(other.name)
        waiting += [*_in_rules(other), *sources.get(other.name, ())]
        if table.name in waiting:
            return True
    return False
