"""The declaration of a column."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lakehouse.errors import DeclarationError
from lakehouse.tables import types


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :raises DeclarationError: if the type does not exist in Spark.
    """

    name: str
    """The name, without dots. Names that differ only in case are equal."""
    type: str
    """The type in Spark's notation, such as `bigint`, `decimal(10,2)`, `timestamp` or
    `array<string>`.
    """
    doc: str = ""
    """Its meaning: the comment in the catalog and in Dagster."""
    personal: bool = False
    """Whether it identifies a person directly. It is masked wherever rows are shown, and
    Iceberg stores no bounds of it.
    """
    required: bool = False
    """Whether Iceberg rejects NULL before any rule is evaluated; for columns that are filled
    automatically.
    """
    renamed_from: Sequence[str] = ()
    """Former names, newest last."""
    profiled: bool = False
    """Whether each write reports the fraction of nulls and the number of distinct values."""
    cast: bool = True
    """Whether text is cast to the type in a table with `rows_of`; if not, the function must do
    it.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "renamed_from", tuple_of(self.renamed_from))
        try:
            object.__setattr__(self, "type", str(types.parse(self.type)))
        except DeclarationError as error:
            raise DeclarationError(f"Column {self.name}: {error}") from None

    def matching_name(self, names: Collection[str]) -> str | None:
        """Return the current or the newest former name that is in a set; None if none is."""
        known = (self.name, *reversed(self.renamed_from))
        return next((name for name in known if name in names), None)


def tuple_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; a single name may be given as a string."""
    return (names,) if isinstance(names, str) else tuple(names)
