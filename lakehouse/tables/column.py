"""The declaration of a column."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lakehouse.errors import DeclarationError
from lakehouse.tables import types


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :raises DeclarationError: when the type is none that Spark has.
    """

    name: str
    """Without dots; names that differ in case alone are one."""
    type: str
    """As Spark writes it, such as `bigint`, `decimal(10,2)`, `timestamp` or `array<string>`."""
    doc: str = ""
    """What it means: its comment in the catalog, and in Dagster."""
    personal: bool = False
    """Whether it identifies a person directly: it is masked wherever rows are shown, and Iceberg
    keeps no bounds of it.
    """
    required: bool = False
    """Whether Iceberg refuses a NULL, before any rule can speak: for what the machine fills."""
    renamed_from: Sequence[str] = ()
    """The names that it had, newest last."""
    profiled: bool = False
    """Whether each write tells the fraction of nulls and how many distinct values it brought."""
    cast: bool = True
    """Whether text is read as the type, in a table that says `rows_of`; else the function does
    it.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "renamed_from", tuple_of(self.renamed_from))
        try:
            object.__setattr__(self, "type", str(types.parse(self.type)))
        except DeclarationError as error:
            raise DeclarationError(f"Column {self.name}: {error}") from None

    def name_among(self, names: Collection[str]) -> str | None:
        """Return which of some names is this column: its own, or the newest that it had; None where
        none is.
        """
        known = (self.name, *reversed(self.renamed_from))
        return next((name for name in known if name in names), None)


def tuple_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of which a single one may be given as text."""
    return (names,) if isinstance(names, str) else tuple(names)
