"""Finds the people that a caller names, with all their ids and personal values.

1. An id leads to all its forms (` 007 ` in delivered text is 7), and to the personal values in
   the rows of that subject, in every file of any snapshot: a former address is the person's too.
2. A personal value leads to the ids of the rows that have it now; if none has it, to the ids that
   once had it. If these are several people, the caller has to name each by id.
3. Nothing else leads further: with an address that two customers share, erasing one would
   otherwise erase the other.
4. A value that no id has, only a table without a subject, is a person of its own: its subject is
   that column, and the value its id.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.privacy.holders import Subject
from lakehouse.privacy.table_values import Owners, find_owners, find_rows_of_ids, find_texts
from lakehouse.tables.person import Person, folded, normal_id
from lakehouse.tables.quoting import meant_name


@dataclass(frozen=True)
class Named:
    """A column and a value by which a caller names a person."""

    column: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """A named person, and what tables contain of the person."""

    subject: Subject
    person: Person = field(repr=False)
    is_known: bool
    """Whether any table has a row or a value of the person, in any snapshot."""

    @property
    def normal_id(self) -> str:
        """The normal form of the person's ids; of a personal value, the first spelling."""
        return min(map(normal_id, self.person.ids))


def find_people(
    engine: Engine, subjects: Sequence[Subject], named: Iterable[Named]
) -> list[Identity]:
    """Return the named people, each once, including unknown ones.

    :raises UsageError: if a column identifies no one, or if several people have a personal value
        and are not all named by id. It contains no value.
    """
    named = list(named)
    found: list[tuple[Identity, set[Named]]] = []
    used: set[Named] = set()
    for subject in subjects:
        by_id = [one for one in named if one.column.lower() in subject.names]
        by_value = [one for one in named if subject.personal_names(one.column)]
        if by_id or by_value:
            used.update(by_id, by_value)
            found.extend(_find_in_subject(engine, subject, by_id, by_value))
    for one in named:
        if one not in used:
            raise _unknown_column(one.column, subjects)
    return _without_superfluous(found)


def _find_in_subject(
    engine: Engine, subject: Subject, by_id: Sequence[Named], by_value: Sequence[Named]
) -> Iterator[tuple[Identity, set[Named]]]:
    """Yield people of a subject, each with the names that led to the person."""
    names_of_id: dict[str, set[Named]] = defaultdict(set)
    for one in by_id:
        names_of_id[normal_id(one.value)].add(one)
    ids_of_value = _ids_of_values(engine, subject, by_value, set(names_of_id))
    for one, ids in ids_of_value.items():
        for owner in ids:
            names_of_id[owner].add(one)
    forms: dict[str, set[str]] = {one: set() for one in names_of_id}
    personal: dict[tuple[str, frozenset[str]], set[str]] = defaultdict(set)
    for holder in subject.holders:
        for row in find_rows_of_ids(engine, holder, forms.keys()):
            forms[row.normal_id].add(row.form)
            for column, texts in row.personal.items():
                personal[row.normal_id, subject.personal_names(column)].update(texts)
    for one_id in sorted(names_of_id):
        values: dict[str, frozenset[str]] = {}
        for column_names in subject.personal:
            of_kind = frozenset(personal[one_id, column_names])
            if of_kind:
                values |= dict.fromkeys(sorted(column_names), of_kind)
        person = Person(subject.name, frozenset({one_id, *forms[one_id]}), values)
        yield Identity(subject, person, bool(forms[one_id])), names_of_id[one_id]
    for one in by_value:
        if not ids_of_value[one]:
            yield _without_id(engine, subject, one), {one}


def _without_id(engine: Engine, subject: Subject, named: Named) -> Identity:
    """Return a person that only tables without a subject contain, by a personal value."""
    texts = find_texts(engine, subject, named.column, named.value)
    names = sorted(subject.personal_names(named.column)) if texts else ()
    person = Person(named.column, texts | {named.value}, dict.fromkeys(names, texts))
    return Identity(subject, person, is_known=bool(texts))


def _without_superfluous(found: Sequence[tuple[Identity, set[Named]]]) -> list[Identity]:
    """Omit unknown people of one subject if the same name leads to known ones of another; a
    column can be the subject of one table and personal in the next.
    """
    people: list[Identity] = []
    answered: set[Named] = set()
    for identity, named in sorted(found, key=lambda one: not one[0].is_known):
        if identity.is_known or not named <= answered:
            people.append(identity)
        answered |= named
    return people


def _ids_of_values(
    engine: Engine, subject: Subject, by_value: Sequence[Named], named_ids: set[str]
) -> dict[Named, set[str]]:
    """Return the ids that have each of some personal values.

    :raises UsageError: if these are several people who are not all named.
    """
    keys = frozenset(folded(one.value) for one in by_value)
    now = find_owners(engine, subject, keys, all_snapshots=False)
    owners = {one: _owners_of(subject, one, now) for one in by_value}
    former = frozenset(folded(one.value) for one, ids in owners.items() if not ids)
    once = find_owners(engine, subject, former, all_snapshots=True)
    for one in by_value:
        owners[one] = owners[one] or _owners_of(subject, one, once)
        count = len(owners[one])
        if count > 1 and not owners[one] <= named_ids:
            raise UsageError(
                f"{count} values of {subject.name} have the given {one.column}; expected one, or"
                " each of them named.",
                next_step=f"Name each person by {subject.name}=….",
            )
    return owners


def _owners_of(subject: Subject, one: Named, owners: Owners) -> set[str]:
    kind = subject.personal.index(subject.personal_names(one.column))
    return set(owners.get((kind, folded(one.value)), ()))


def _unknown_column(name: str, subjects: Sequence[Subject]) -> UsageError:
    known: set[str] = set()
    for subject in subjects:
        known |= subject.names.union(*subject.personal)
    return UsageError(
        f"{name} is neither a subject nor a personal column of any table;"
        f" {meant_name(name, known)}"
    )
