"""Which values are searched: by themselves where they are distinctive, else only where something
says of which column they are.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.tables.masking import mask
from lakehouse.tables.person import Person, is_distinctive, normal_id

_MOST_DIGITS = 40


@dataclass(frozen=True)
class WantedValues:
    """The values of persons, and those of them that others have too."""

    columns: Mapping[str, frozenset[str]]
    """By column; ids also as they are compared."""
    distinctive: frozenset[str]
    shared: frozenset[str] = field(default=frozenset())
    """What is left where it stands, with what stands within it."""

    @classmethod
    def of(
        cls,
        persons: Iterable[Person],
        shared: Collection[str] = (),
        masking_keys: Iterable[bytes] = (),
    ) -> "WantedValues":
        """Gather them, with the masks that stand for them in samples and alerts.

        :param masking_keys: by which values may have been masked.
        """
        columns: dict[str, set[str]] = {}
        for person in persons:
            for column, values in person.personal.items():
                columns.setdefault(column, set()).update(filter(_is_value, values))
            ids = columns.setdefault(person.subject, set())
            ids.update(filter(_is_value, person.ids))
            ids.update(map(normal_id, tuple(ids)))
        keys = tuple(masking_keys)
        for known in columns.values():
            own = known - {*shared}
            known.update(*(_masks(key, own) for key in keys))
        everything = frozenset().union(*columns.values())
        return cls(
            {column: frozenset(values) for column, values in columns.items()},
            frozenset(filter(is_distinctive, map(str.strip, everything - {*shared})))
            - {*shared},
            frozenset(filter(None, shared)),
        )

    @property
    def not_distinctive(self) -> int:
        """How many values are searched only where something says of which column they are."""
        everything = frozenset().union(*self.columns.values()) - self.shared
        return sum(not is_distinctive(value) for value in everything)

    def holds(self, column: str, text: str) -> bool:
        """Whether a text is a value of a column, whoever else has it."""
        values = self.columns.get(column, frozenset())
        return text in values or normal_id(text) in values

    def is_of_persons(self, value: str) -> bool:
        """Whether a value is one of the persons' in any column."""
        return any(value in values for values in self.columns.values())

    def is_shared(self, text: str) -> bool:
        """Whether somebody else has it too."""
        return text in self.shared or normal_id(text) in self.shared

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The distinctive integers, which JSON may have without quotes."""
        return frozenset(filter(is_integer, self.distinctive))


def is_integer(value: str) -> bool:
    """Whether a value has digits alone, and not so many that nobody counts with them."""
    return value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS


def _is_value(text: str) -> bool:
    """Whether a text stands for somebody: neither a blank nor what is written over values."""
    return bool(text.strip()) and text not in ERASED


def _masks(key: bytes, values: Collection[str]) -> set[str]:
    return {masked for value in values if (masked := mask(key, value))}
