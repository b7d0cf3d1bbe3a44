"""The tables that a write reads beside its own: where one of them is not there, a table that is not
there either is not made for a write that would fail.
"""

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
    """Refuse to write a table whose inputs, or the tables that its rules read, are not there.

    :param declared: the project's tables, by name. Of those that read one another, one has to be
        there first: such a reading is left to the write.
    :param sources: by table, the tables that it is computed from.
    :raises TableNotFound: names the first that is not there.
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
    """Whether another table or its rules read this one, be it by way of further tables."""
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
