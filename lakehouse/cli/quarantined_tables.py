"""Table arguments of `lakehouse quarantine`."""

from typing import TYPE_CHECKING

from lakehouse.cli.call_context import State, plain_name
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable


def all_with_quarantine(state: State) -> "list[IcebergTable]":
    """Return the declared tables with a quarantine, by name."""
    declared = (state.declared[name] for name in sorted(state.declared))
    return [table for table in declared if table.quarantine]


def table_with_quarantine(state: State, name: str) -> "IcebergTable":
    """Return a table by its name or its quarantine's; raises UsageError if it has none."""
    owners = all_with_quarantine(state)
    by_name = {table.name: table for table in owners}
    by_name |= {table.quarantine.name: table for table in owners if table.quarantine}
    if plain_name(name) in by_name:
        return by_name[plain_name(name)]
    table = state.declared_table(name)
    raise UsageError(
        f"{table.name} has no quarantine, since no rule of it refuses rows; those that have one"
        f" are {', '.join(owner.name for owner in owners) or 'none'}.",
        next_step="A rule on rows whose on_failure is 'quarantine' gives it one.",
    )
