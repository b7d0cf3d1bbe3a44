"""Who is meant, and which values stand for them: from an id or an e-mail to all ids and personal
values of a person, looked up in every table that holds people of that subject.

What leads to what, and how far:

1. Only the subject identifies. An id leads to all its forms (` 007 ` in delivered text beside 7),
   and these to the personal values in the rows of that subject, in every file that any snapshot,
   branch or tag still names: a former address is the person's too.
2. A personal value that the caller names leads to the ids of the rows that have it now, or where
   none has it, to those that once had. Where these are several people the caller has to name each
   of them by id: nobody is erased, or told about, because they share an address with somebody.
3. Nothing else leads on. What is found by an id is never followed to another id: with an address
   that two customers share, erasing one would otherwise take the other along, and whoever shares
   one with them. This bounds the search: two looks at each table, whatever they hold.
4. In a table without a subject, in one whose subject is itself such a value, and in rows that
   have no id, the person's values are looked for in all their spellings (other capitals, spaces
   around them). A value that somebody else has as well is `shared`: who erases leaves it to
   them, and says so.

A value that no id has, but a table without a subject, is a person of its own: its subject is that
column, and the value its id.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.compared_values import compared
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.table_reading import present_names
from lakehouse.privacy.value_places import Spelling, find_ids, find_owners, find_spellings
from lakehouse.tables.person import Person, normal_id
from lakehouse.tables.suggestions import meant_name


@dataclass(frozen=True)
class Named:
    """What a caller names a person by: a column, and its value there."""

    column: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """A person that was named, and what was found of them."""

    subject: Subject
    person: Person = field(repr=False)
    is_known: bool
    """Whether any table has a row or a value of theirs, in whatever snapshot."""
    shared: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    """Of the personal values, by column, those that somebody else has now."""

    @property
    def normal_id(self) -> str:
        """The form that all ids of the person have in common; of who is known by a personal
        value alone, the first of its spellings.
        """
        return min(map(normal_id, self.person.ids))


def find_people(
    engine: Engine, subjects: Sequence[Subject], named: Iterable[Named]
) -> list[Identity]:
    """Return the people that are named, each once, those that no table knows too; no JVM.

    :raises UsageError: when a column stands for nobody, or a personal value for several people
        who are not all named by id. No value stands in it.
    """
    named = list(named)
    found: list[tuple[Identity, set[Named]]] = []
    matched: set[Named] = set()
    for subject in subjects:
        by_id = [one for one in named if one.column.lower() in subject.names]
        by_value = [one for one in named if subject.personal_names(one.column)]
        if by_id or by_value:
            matched.update(by_id, by_value)
            found.extend(_find(engine, subject, by_id, by_value))
    for one in named:
        if one not in matched:
            raise _unknown_column(one.column, subjects)
    return _without_superfluous(found)


def _find(
    engine: Engine, subject: Subject, by_id: Sequence[Named], by_value: Sequence[Named]
) -> Iterator[tuple[Identity, set[Named]]]:
    """Yield people of a subject, each with that by which it was named."""
    answers: dict[str, set[Named]] = defaultdict(set)
    for one in by_id:
        answers[normal_id(one.value)].add(one)
    leading = _ids_of_values(engine, subject, by_value, set(answers))
    for one, ids in leading.items():
        for owner in ids:
            answers[owner].add(one)
    found = _Values(answers)
    for holder in subject.holders:
        found.add_holder(engine, holder)
    spellings, without = find_spellings(engine, subject, found.personal)
    for spelling in spellings:
        found.add_spelling(spelling)
    # Another spelling is compared as the same value: no file without one has the other.
    owners = find_owners(engine, subject, found.keys(), all_snapshots=False, without=without)
    for one_id in sorted(answers):
        yield found.identity(subject, one_id, owners), answers[one_id]
    for one in by_value:
        if not leading[one]:
            yield _without_id(engine, subject, one), {one}


def _without_id(engine: Engine, subject: Subject, named: Named) -> Identity:
    """Return who is known by a personal value alone, to tables without a subject."""
    names = subject.personal_names(named.column)
    personal = {named.value: {named.column.lower(): {named.value}}}
    spellings, _ = find_spellings(engine, subject, personal)
    texts = {spelling.text for spelling in spellings}
    person = Person(
        named.column,
        frozenset({named.value, *texts}),
        dict.fromkeys(sorted(names), frozenset(texts)) if texts else {},
    )
    return Identity(subject, person, is_known=bool(texts))


def _without_superfluous(found: Sequence[tuple[Identity, set[Named]]]) -> list[Identity]:
    """Leave out who is unknown as a person of one subject, where what they are named by is known
    as that of another; a column may be the subject of one table and personal in the next.
    """
    people: list[Identity] = []
    answered: set[Named] = set()
    for identity, named in sorted(found, key=lambda one: not one[0].is_known):
        if identity.is_known or not named <= answered:
            people.append(identity)
        answered |= named
    return people


class _Values:
    """What is found of some ids, by id: the forms of it, and personal values by column."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.forms: dict[str, set[str]] = {one: set() for one in ids}
        self.personal: dict[str, dict[str, set[str]]] = {}
        for one in self.forms:
            self.personal[one] = defaultdict(set)

    def add_holder(self, engine: Engine, holder: Holder) -> None:
        """Add what a table has of them, in any of its snapshots."""
        if not self.forms or not holder.ids or not engine.catalog.has(holder.table):
            return
        loaded = engine.catalog.load(holder.table)
        names = present_names(loaded, holder.columns)
        for column in holder.ids:
            if column.name not in names:
                continue
            personal = {}
            if column == holder.row_column:
                personal = present_names(loaded, holder.personal)
            for row in find_ids(loaded, names[column.name], self.forms, personal):
                self.forms[row.id].add(row.form)
                for beside, texts in row.personal.items():
                    self.personal[row.id][beside.lower()].update(texts)

    def add_spelling(self, spelling: Spelling) -> None:
        """Add another spelling of a personal value."""
        self.personal[spelling.id][spelling.column].add(spelling.text)

    def keys(self) -> frozenset[str]:
        """Return all personal values as they are compared."""
        keys: set[str] = set()
        for columns in self.personal.values():
            for texts in columns.values():
                keys.update(map(compared, texts))
        return frozenset(keys)

    def identity(
        self, subject: Subject, one: str, owners: Mapping[tuple[int, str], set[str]]
    ) -> Identity:
        """Return a person with all that was found of them."""
        personal, shared = {}, {}
        for number, names in enumerate(subject.personal):
            texts: set[str] = set()
            for name in names:
                texts |= self.personal[one].get(name, set())
            others = {
                text for text in texts if owners.get((number, compared(text)), set()) - {one}
            }
            for name in names if texts else ():
                personal[name] = frozenset(texts)
                if others:
                    shared[name] = frozenset(others)
        person = Person(subject.name, frozenset(self.forms[one] | {one}), personal)
        return Identity(subject, person, bool(self.forms[one] or personal), shared)


def _ids_of_values(
    engine: Engine, subject: Subject, by_value: Sequence[Named], named_ids: set[str]
) -> dict[Named, set[str]]:
    """Return the ids that each of some personal values leads to.

    :raises UsageError: when one leads to several people who are not all named.
    """
    keys = frozenset(compared(one.value) for one in by_value)
    now = find_owners(engine, subject, keys, all_snapshots=False)
    leading = {one: _owners_of(subject, one, now) for one in by_value}
    former = frozenset(compared(one.value) for one, owners in leading.items() if not owners)
    once = find_owners(engine, subject, former, all_snapshots=True)
    for one, owners in leading.items():
        leading[one] = owners or _owners_of(subject, one, once)
        count = len(leading[one])
        if count > 1 and not leading[one] <= named_ids:
            raise UsageError(
                f"The {one.column} that was given is that of {count} values of"
                f" {subject.name}; expected that of one, or each of them named.",
                next_step=f"Name each person by {subject.name}=….",
            )
    return leading


def _owners_of(
    subject: Subject, one: Named, owners: Mapping[tuple[int, str], set[str]]
) -> set[str]:
    number = subject.personal.index(subject.personal_names(one.column))
    return owners.get((number, compared(one.value)), set())


def _unknown_column(name: str, subjects: Sequence[Subject]) -> UsageError:
    known: set[str] = set()
    for subject in subjects:
        known |= subject.names.union(*subject.personal)
    return UsageError(
        f"{name} is neither a subject nor a personal column of any table;"
        f" {meant_name(name, known)}"
    )
