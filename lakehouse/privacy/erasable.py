"""What there is to erase people from: a deployment, what is declared on it, and who holds whom."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.orchestration.runs import MakeDefinitions
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.person import Person
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class Erasable:
    """A deployment with its declarations; a value without behaviour but for look-ups."""

    settings: Settings
    engine: Engine
    tables: Mapping[str, IcebergTable]
    """The declared tables by name, quarantines among them."""
    feeds: Mapping[str, Feed]
    subjects: tuple[Subject, ...]
    sources: Mapping[str, Collection[str]]
    """By table, the tables that it is computed from."""
    readers: Mapping[str, Collection[str]]
    """By table, those that read on in it from where they were."""
    audit: IcebergTable
    project: MakeDefinitions
    """Makes the definitions by which tables are computed anew."""

    @property
    def dependents(self) -> dict[str, set[str]]:
        """By table, all that are computed from it, whether they read on in it or in full."""
        dependents: dict[str, set[str]] = {}
        for name, sources in self.sources.items():
            for source in sources:
                dependents.setdefault(source, set()).add(name)
        return dependents

    @property
    def store(self) -> ObjectStore:
        """Where delivered files stand."""
        return open_store(self.settings)

    def subject_of(self, person: Person) -> Subject:
        """Return the kind of people that a person is of, or whose value they are known by.

        :raises LakehouseError: when nothing declares it any more.
        """
        name = person.subject.lower()
        for subject in self.subjects:
            if name in subject.names:
                return subject
        for subject in self.subjects:
            if subject.personal_names(name):
                return subject
        raise LakehouseError(
            f"{person.subject} stands for people in no table; expected a subject that a table"
            " declares, or a personal column of one.",
            next_step=(
                "Declare it again, as it was when the request was made, until the request is"
                " verified."
            ),
        )

    def holders(self, persons: Iterable[Person]) -> list[tuple[Holder, list[Person]]]:
        """Return the tables that may hold some people, sources before what is computed of them,
        each with those that it may hold.
        """
        found: dict[str, list[tuple[Holder, Person]]] = {}
        for person in persons:
            for holder in self.subject_of(person).holders:
                found.setdefault(holder.table, []).append((holder, person))
        order = [name for name in self.in_order() if name in found]
        grouped = []
        for name in order:
            holders = dict.fromkeys(holder for holder, _ in found[name])
            for holder in holders:
                theirs = [person for one, person in found[name] if one == holder]
                grouped.append((holder, theirs))
        return grouped

    def feeds_of(
        self, persons: Iterable[Person]
    ) -> Iterator[tuple[Feed, Holder, list[Person]]]:
        """Yield the feeds whose files may hold some people, with the table that they land in."""
        for holder, theirs in self.holders(persons):
            for feed in self.feeds.values():
                if feed.table == holder.table:
                    yield feed, holder, theirs

    def tables_of(self, persons: Iterable[Person]) -> list[IcebergTable]:
        """Return the tables that may hold some people and are there, sources first."""
        names = dict.fromkeys(holder.table for holder, _ in self.holders(persons))
        return [self.tables[name] for name in names if self.engine.catalog.has(name)]

    def in_order(self) -> list[str]:
        """Return the declared tables, sources before what is computed of them."""
        graph = {name: set(self.sources.get(name, ())) - {name} for name in sorted(self.tables)}
        return list(TopologicalSorter(graph).static_order())
