"""The tables that a write reads beside its own: where one of them is not there, a table that is not
there either is not made for a write that would fail.
"""

from collections.abc import Iterator, Mapping

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.table import IcebergTable


def require_needed(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    declared: Mapping[str, IcebergTable],
) -> None:
    """Refuse to write a table whose inputs, or the tables that its rules read, are not there.

    :param declared: the project's tables, by name. Of those whose rules read one another, one has
        to be there first: such a rule is left to the write.
    :raises TableNotFound: names the first that is not there.
    """
    own = (table.name, table.quarantine.name if table.quarantine else "")
    for name in (*(source.table for source in inputs.values()), *_in_rules(table)):
        if name in own or _read_back(name, table, declared):
            continue
        read_history(engine, name)


def _in_rules(table: IcebergTable) -> Iterator[str]:
    for rule in table.rules:
        yield from rule.read_columns


def _read_back(name: str, table: IcebergTable, declared: Mapping[str, IcebergTable]) -> bool:
    """Whether rules of another table read this one, be it by way of further tables."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        other = declared.get(waiting.pop())
        if other is None or other.name in reached:
            continue
        reached.add(other.name)
        waiting += _in_rules(other)
        if table.name in waiting:
            return True
    return False
