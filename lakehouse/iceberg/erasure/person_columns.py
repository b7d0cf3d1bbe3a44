"""Which columns of a table stand for a person, and which of their values are the person's."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.arrow_ids import whole_numbers
from lakehouse.tables.people import names_of
from lakehouse.tables.person import Person, normal_id
from lakehouse.tables.table import SOURCE_KEY, IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField

_NUMBERS = ("decimal", "float", "double")
_QUARANTINE = frozenset({"_row_key", "_reasons"})


@dataclass(frozen=True)
class PersonColumn:
    """A column, identified by its field id, and the values of data subjects in it."""

    field: "NestedField"
    values: frozenset[str]
    """As text; of a column with parts, those of its leaves."""
    is_current: bool = True
    """Whether the current schema has it; old files also contain dropped columns."""
    is_normalized: bool = False
    """Whether its values are compared as `normal_id` returns them: delivered text (` 007 ` is
    7), decimals (17.00 is 17) and floats.
    """

    @property
    def type(self) -> str:
        """Its type as Iceberg names it."""
        return str(self.field.field_type)

    @property
    def has_parts(self) -> bool:
        """Whether a value of it is a struct, an array or a map."""
        return not self.field.field_type.is_primitive

    @cached_property
    def normal_values(self) -> frozenset[str]:
        """The values as `normal_id` returns them."""
        return frozenset(normal_id(value) for value in self.values)

    @cached_property
    def integers(self) -> list[int]:
        """The values that a column of whole numbers can have, sorted."""
        return whole_numbers(self.values, self.type)


@dataclass(frozen=True)
class PersonColumns:
    """The columns by which rows are some people's.

    A row is theirs when a subject column says so. Where the table has none, or the row has no
    value there, a personal value says so: with another person's id beside it, it is that
    person's.
    """

    subject: tuple[PersonColumn, ...]
    personal: tuple[PersonColumn, ...]

    @property
    def all(self) -> tuple[PersonColumn, ...]:
        """All of them."""
        return (*self.subject, *self.personal)


def person_columns(
    table: IcebergTable, loaded: "Table", persons: Sequence[Person]
) -> PersonColumns:
    """Return the columns that may hold some people: by each name that they were declared with,
    and as the table has or had them.
    """
    holds_deliveries = set(SOURCE_KEY) <= set(table.column_names)
    is_delivered = holds_deliveries or set(table.column_names) >= _QUARANTINE
    normalized = (*_NUMBERS, "string") if is_delivered else _NUMBERS
    subject: list[PersonColumn] = []
    personal: list[PersonColumn] = []
    for column in table.columns:
        names = names_of(column)
        ids = frozenset(_ids(names, persons))
        if ids:
            subject += _of_table(loaded, names, ids, normalized)
            continue
        values = frozenset(_personal_values(names, persons))
        if values:
            personal += _of_table(loaded, names, values)
    return PersonColumns(tuple(subject), tuple(personal))


def _ids(names: frozenset[str], persons: Iterable[Person]) -> Iterator[str]:
    for person in persons:
        if person.subject.lower() in names:
            yield from person.ids


def _personal_values(names: frozenset[str], persons: Iterable[Person]) -> Iterator[str]:
    for person in persons:
        for column, values in person.personal.items():
            if column.lower() in names:
                yield from values


def _of_table(
    loaded: "Table",
    names: frozenset[str],
    values: frozenset[str],
    normalized: Collection[str] = (),
) -> Iterator[PersonColumn]:
    """Yield the columns of these names that a table has; where it has none of them, those that
    it had.
    """
    current = _fields(loaded.schema().fields, names)
    fields = dict(current)
    if not current:
        for schema in loaded.schemas().values():
            fields |= _fields(schema.fields, names)
    for field_id, field in sorted(fields.items()):
        yield PersonColumn(
            field,
            values,
            is_current=field_id in current,
            is_normalized=str(field.field_type).partition("(")[0] in normalized,
        )


def _fields(fields: "Iterable[NestedField]", names: frozenset[str]) -> "dict[int, NestedField]":
    return {field.field_id: field for field in fields if field.name.lower() in names}
