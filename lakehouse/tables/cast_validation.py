"""Whether a rule that says how a column is read gives what the column holds, said at load
rather than in a run.
"""

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.type_promotion import is_wider

_ANYTHING = types.Primitive("string")


def check_casts(table: TableDeclaration) -> None:
    """Check that what `castable` reads fits its column: the same type, a narrower one, or
    anything that stays text.

    A value that can be read as what the rule says, and not kept as what the column is, would
    fail each run.

    :raises DeclarationError: names the table, the rule and both types.
    """
    for rule in table.rules:
        if rule.cast is None:
            continue
        name = rule.columns[0]
        read, kept = types.parse(rule.cast.type), types.parse(table.column(name).type)
        if kept != _ANYTHING and read != kept and not is_wider(kept, read):
            raise DeclarationError(
                f"{table.name}: rule {rule.name} reads {name} as {read}, and the column is"
                f" {kept}; expected {kept}, or a type of which each value is one.",
                next_step=(
                    f"Say castable({name!r}, {str(kept)!r}), or declare the column as {read}."
                ),
            )
