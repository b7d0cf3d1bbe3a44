"""A deployment with its declarations, as the input of an erasure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.orchestration.runs.run_in_process import MakeDefinitions
from lakehouse.privacy.holders import Holder, Subject, subject_of
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.person import Person
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class Erasable:
    """A deployment with its declarations, and who is in which table."""

    settings: Settings
    engine: Engine
    tables: Mapping[str, IcebergTable]
    """The declared tables by name, including quarantines."""
    feeds: Mapping[str, Feed]
    subjects: tuple[Subject, ...]
    sources: Mapping[str, Collection[str]]
    """By table, the tables that it is computed from."""
    readers: Mapping[str, Collection[str]]
    """By table, the tables that read it incrementally."""
    audit: IcebergTable
    make_definitions: MakeDefinitions
    """Makes the definitions of Dagster that recompute tables."""

    @property
    def dependents(self) -> dict[str, set[str]]:
        """By table, all tables that are computed from it."""
        dependents: dict[str, set[str]] = {}
        for name, sources in self.sources.items():
            for source in sources:
                dependents.setdefault(source, set()).add(name)
        return dependents

    @property
    def store(self) -> ObjectStore:
        """The store of delivered files."""
        return open_store(self.settings)

    def holders(self, persons: Iterable[Person]) -> list[tuple[Holder, list[Person]]]:
        """Return the tables that can contain some people, sources first, each with these people."""
        by_table: dict[str, dict[Holder, list[Person]]] = {}
        for person in persons:
            for holder in subject_of(self.subjects, person).holders:
                by_holder = by_table.setdefault(holder.table, {})
                by_holder.setdefault(holder, []).append(person)
        return [pair for name in self.in_order() for pair in by_table.get(name, {}).items()]

    def feeds_of(
        self, persons: Iterable[Person]
    ) -> Iterator[tuple[Feed, Holder, list[Person]]]:
        """Yield the feeds whose files can contain some people, with their table."""
        for holder, in_table in self.holders(persons):
            for feed in self.feeds.values():
                if feed.table == holder.table:
                    yield feed, holder, in_table

    def tables_of(self, persons: Iterable[Person]) -> list[IcebergTable]:
        """Return the existing tables that can contain some people, sources first."""
        names = dict.fromkeys(holder.table for holder, _ in self.holders(persons))
        return [self.tables[name] for name in names if self.engine.catalog.has(name)]

    def in_order(self) -> list[str]:
        """Return the declared tables, sources before the tables that are computed from them."""
        graph = {name: set(self.sources.get(name, ())) - {name} for name in sorted(self.tables)}
        return list(TopologicalSorter(graph).static_order())

    def by_all_names(self, persons: Iterable[Person]) -> list[Person]:
        """Return people once for each name of their id column in any table."""
        people = []
        for person in persons:
            names = subject_of(self.subjects, person).names
            is_by_id = person.subject.lower() in names
            for name in sorted(names) if is_by_id else [person.subject]:
                people.append(replace(person, subject=name))
        return people


def people_in(
    holder: Holder, persons: Iterable[Person], shared: frozenset[str]
) -> list[Person]:
    """Return people with the names of the id columns of a table, without shared values: these
    identify no row.
    """
    people = []
    # Delivered files have the declared spelling.
    spelled = {column.name.lower(): column.name for column in holder.personal}
    for person in persons:
        personal = {
            spelled.get(name, name): values - shared for name, values in person.personal.items()
        }
        own = replace(person, personal={name: own for name, own in personal.items() if own})
        names = [column.name for column in holder.ids]
        people += [replace(own, subject=name) for name in names] or [own]
    return people
