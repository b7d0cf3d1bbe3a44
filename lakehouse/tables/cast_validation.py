"""Check at load time that `castable` rules fit the types of their columns."""

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.type_promotion import is_wider

_ANYTHING = types.Primitive("string")


def check_casts(table: TableDeclaration) -> None:
    """Check that the type of a `castable` rule fits its column: the same type, a narrower one,
    or any type for a string column.

    Otherwise a value that the rule accepts could not be stored, and every run would fail.

    :raises DeclarationError: states the table, the rule and both types.
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
                    f"Use castable({name!r}, {str(kept)!r}), or declare the column as {read}."
                ),
            )
