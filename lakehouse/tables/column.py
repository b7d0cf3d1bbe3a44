"""The declaration of a column."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.errors import DeclarationError
from lakehouse.tables import types


@dataclass(frozen=True)
class Column:
    """A column: its name, its type as Spark writes it, and what it means.

    `required` is for what the machine fills, since Iceberg refuses a NULL there before any rule
    can speak. `personal` marks what identifies a person directly. `renamed_from` lists the names
    that it had, newest last. Of a `profiled` one each write tells the fraction of nulls and how
    many distinct values it brought. `cast=False` leaves it to the function to read text as the
    type, in a table that says `rows_of`.
    """

    name: str
    type: str
    doc: str = ""
    personal: bool = False
    required: bool = False
    renamed_from: Sequence[str] = ()
    profiled: bool = False
    cast: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "renamed_from", tuple_of(self.renamed_from))
        try:
            object.__setattr__(self, "type", str(types.parse(self.type)))
        except DeclarationError as error:
            raise DeclarationError(f"Column {self.name}: {error}") from None


def tuple_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of which a single one may be given as text."""
    return (names,) if isinstance(names, str) else tuple(names)
