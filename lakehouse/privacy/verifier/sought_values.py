"""Which values are searched, and which of them remaining people explain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ahocorasick_rs import AhoCorasick

from lakehouse.privacy.verifier.byte_forms import spellings, truncated_bounds
from lakehouse.tables.person import Person, is_distinctive, normal_id

Kind = Literal["id", "personal value", "beginning of a value"]

_INTEGERS_END = 2**63


@dataclass(frozen=True, order=True)
class Sought:
    """What a hit stands for; the value itself is nowhere in it."""

    person: int
    """Which of the people, from 0."""
    kind: Kind
    is_shared: bool = False
    """Whether somebody who remains has the value too, or, of a beginning, one that begins with
    it.
    """

    def shared(self) -> "Sought":
        """Return the same, explained by somebody who remains."""
        return replace(self, is_shared=True)


@dataclass(frozen=True)
class SoughtText:
    """A text that is searched as bytes."""

    text: str
    sought: Sought


@dataclass(frozen=True)
class SoughtValues:
    """The values of the people who should be gone, beside those of the people who remain."""

    people: Sequence[Person]
    remaining: frozenset[str]
    """The values of remaining people that have one of the values in them, folded."""

    @classmethod
    def of(cls, people: Sequence[Person], remaining: Iterable[str]) -> "SoughtValues":
        """Keep of the remaining values those that matter; they are read once, one at a
        time.
        """
        return cls(tuple(people), frozenset(_that_matter(people, remaining)))

    def texts(self) -> list[SoughtText]:
        """Return the distinctive values, then what truncated bounds keep of them."""
        whole = []
        beginnings = []
        for number, person in enumerate(self.people):
            for kind, value in _values(person):
                if not is_distinctive(value):
                    continue
                is_shared = kind != "id" and fold(value) in self.remaining
                whole.append(SoughtText(value, Sought(number, kind, is_shared)))
                beginnings += self._beginnings(number, value)
        return list(dict.fromkeys([*whole, *beginnings]))

    def integers(self) -> dict[int, Sought]:
        """Return the distinctive ids that are integers of 64 bits."""
        found: dict[int, Sought] = {}
        for number, person in enumerate(self.people):
            for value in sorted(map(normal_id, person.ids)):
                is_integer = value.isascii() and value.isdigit() and is_distinctive(value)
                if is_integer and int(value) < _INTEGERS_END:
                    found.setdefault(int(value), Sought(number, "id"))
        return found

    def is_shared(self, value: str) -> bool:
        """Whether somebody who remains has a value."""
        return fold(value) in self.remaining

    def _beginnings(self, person: int, value: str) -> Iterator[SoughtText]:
        for spelling in spellings(value):
            bounds = truncated_bounds(spelling)
            is_shared = bool(bounds) and self._begins_a_remaining_one(bounds[0])
            for bound in bounds:
                shared = is_shared or self._begins_a_remaining_one(bound)
                yield SoughtText(bound, Sought(person, "beginning of a value", shared))

    def _begins_a_remaining_one(self, text: str) -> bool:
        folded = fold(text)
        return any(value.startswith(folded) for value in self.remaining)


def fold(value: str) -> str:
    """Return a value as remaining ones are compared with it: without regard to case."""
    return normal_id(value).lower()


def _values(person: Person) -> Iterator[tuple[Kind, str]]:
    for value in sorted(person.ids):
        yield "id", normal_id(value)
    for column in sorted(person.personal):
        for value in sorted(person.personal[column]):
            yield "personal value", value.strip()


def _that_matter(people: Sequence[Person], remaining: Iterable[str]) -> Iterator[str]:
    parts = set()
    short = set()
    for person in people:
        for _, value in _values(person):
            if not is_distinctive(value):
                short.add(fold(value))
                continue
            parts.add(fold(value))
            for spelling in spellings(value):
                parts.update(fold(bound) for bound in truncated_bounds(spelling))
    if not parts | short:
        return
    search = AhoCorasick(sorted(parts)) if parts else None
    for value in remaining:
        folded = fold(value)
        if folded in short or (search and search.find_matches_as_indexes(folded)):
            yield folded
