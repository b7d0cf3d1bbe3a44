"""Where a table is declared, so that another file can import it."""

from collections.abc import Iterable
from types import ModuleType

from lakehouse.errors import UsageError
from lakehouse.scaffolding.table_text import Source
from lakehouse.tables.table import IcebergTable


def source_of(modules: Iterable[ModuleType], table: IcebergTable) -> Source:
    """Return the module that a table is declared in, and its name there.

    Other modules import it, under other names: that counts which is named as the table, and
    else the first.

    :raises UsageError: no module has it under a name.
    """
    places = []
    for module in modules:
        for name, value in vars(module).items():
            # Upkeep of its layer is put into a copy of what the module declares.
            if isinstance(value, IcebergTable) and value.name == table.name:
                is_own = module.__name__.rpartition(".")[2] == table.short_name
                places.append((not is_own, module.__name__, name))
    if not places:
        raise UsageError(
            f"No module declares {table.name} under a name; expected one that can be imported."
        )
    _, module_name, name = min(places)
    return Source(table, module_name, name)
