"""Which values are searched, and which of them remaining people explain."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ahocorasick_rs import AhoCorasick

from lakehouse.privacy.verifier.byte_forms import spellings, truncated_bounds
from lakehouse.tables.person import Person, is_distinctive, normal_id

Kind = Literal["id", "personal value", "beginning of a value"]
MOST_LONGER_VALUES = 1000
"""How many remaining values that have a value in them are searched beside it; where there are
more, it tells nobody from others as bytes.
"""
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
class _Remaining:
    """What the values of people who remain explain; all texts are folded."""

    same: frozenset[str] = frozenset()
    """Values that somebody else has."""
    begun: frozenset[str] = frozenset()
    """Beginnings that values of somebody else have."""
    longer: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Values of somebody else that have a value in them, by that."""

    def explains(self, value: str) -> bool:
        """Whether a value stands for nobody as bytes."""
        folded = fold(value)
        return folded in self.same or len(self.longer.get(folded, ())) > MOST_LONGER_VALUES


@dataclass(frozen=True)
class SoughtValues:
    """The values of the people who should be gone, beside those of the people who remain."""

    people: Sequence[Person]
    remaining: _Remaining

    @classmethod
    def of(cls, people: Sequence[Person], remaining: Iterable[str]) -> "SoughtValues":
        """Keep of the remaining values those that matter; they are read once, one at a
        time.
        """
        return cls(tuple(people), _that_matter(people, remaining))

    def texts(self) -> list[SoughtText]:
        """Return the distinctive values, then what truncated bounds keep of them."""
        whole = []
        beginnings: list[SoughtText] = []
        for number, person in enumerate(self.people):
            for kind, value in _values(person):
                if not is_distinctive(value):
                    continue
                is_shared = kind != "id" and self.remaining.explains(value)
                whole.append(SoughtText(value, Sought(number, kind, is_shared)))
                beginnings += self._beginnings(number, value)
        return list(dict.fromkeys([*whole, *beginnings]))

    def longer_values(self) -> list[str]:
        """Return the remaining values that have one of the others in them, and explain it
        there.
        """
        found: set[str] = set()
        for value, longer in self.remaining.longer.items():
            if not self.remaining.explains(value):
                found |= longer
        return sorted(found)

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
        return fold(value) in self.remaining.same

    def _beginnings(self, person: int, value: str) -> Iterator[SoughtText]:
        for spelling in spellings(value):
            bounds = truncated_bounds(spelling)
            is_shared = any(_fold_bound(bound) in self.remaining.begun for bound in bounds)
            for bound in bounds:
                yield SoughtText(bound, Sought(person, "beginning of a value", is_shared))


def fold(value: str) -> str:
    """Return a value as remaining ones are compared with it: without regard to case."""
    return _fold_bound(normal_id(value))


def _fold_bound(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


def _values(person: Person) -> Iterator[tuple[Kind, str]]:
    for value in sorted(filter(str.strip, person.ids)):
        yield "id", normal_id(value)
    for column in sorted(person.personal):
        for value in sorted(filter(str.strip, person.personal[column])):
            yield "personal value", value.strip()


def _that_matter(people: Sequence[Person], remaining: Iterable[str]) -> _Remaining:
    whole = {fold(value) for person in people for _, value in _values(person)}
    bounds = {
        _fold_bound(bound)
        for person in people
        for _, value in _values(person)
        for bound in _all_bounds(value)
    }
    texts = sorted(bounds | set(filter(is_distinctive, whole)))
    search = AhoCorasick(texts)
    same: set[str] = set()
    begun: set[str] = set()
    longer: defaultdict[str, set[str]] = defaultdict(set)
    for value in remaining:
        folded = fold(value)
        if folded in whole:
            same.add(folded)
        for index, start, _ in search.find_matches_as_indexes(folded, overlapping=True):
            text = texts[index]
            if start == 0 and text in bounds:
                begun.add(text)
            if text in whole and text != folded and len(longer[text]) <= MOST_LONGER_VALUES:
                longer[text].add(folded)
    frozen = {text: frozenset(values) for text, values in longer.items()}
    return _Remaining(frozenset(same), frozenset(begun), frozen)


def _all_bounds(value: str) -> Iterator[str]:
    for spelling in spellings(value):
        yield from truncated_bounds(spelling)
