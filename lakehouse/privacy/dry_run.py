"""What an erasure would take, counted; nothing is changed, and no request is opened."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse.iceberg.erasure.delete_rows import count_rows
from lakehouse.iceberg.metadata.history import MAIN
from lakehouse.privacy.delivered_files import find_in_files
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erase_now import CostOfErasure, cost_of_erasure
from lakehouse.privacy.erased_people import by_all_names, people_in, shared_values
from lakehouse.privacy.identity import Named, find_people
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.steps.identify import is_delivered
from lakehouse.privacy.sums import find_sums
from lakehouse.privacy.unread_tables import unread_tables
from lakehouse.tables.person import Person


@dataclass(frozen=True)
class WouldGo:
    """What an erasure would take."""

    unknown: int = 0
    """How many of those who were named nothing holds."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table, and by branch or tag."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Rows by delivered file; 0 where nobody can say."""
    sums: tuple[str, ...] = ()
    """Tables that would be computed anew."""
    kept: tuple[str, ...] = ()
    """Tables that would keep their sums, as declared."""
    places: tuple[ScrubbedPlace, ...] = ()
    cost: CostOfErasure = field(default_factory=CostOfErasure)


def dry_run(erasable: Erasable, named: Sequence[Named]) -> WouldGo:
    """Return what an erasure of some people would take."""
    persons: list[Person] = []
    unknown = 0
    for identity in find_people(erasable.engine, erasable.subjects, named):
        if identity.is_known or is_delivered(erasable, identity):
            persons.append(identity.person)
        else:
            unknown += 1
    if not persons:
        return WouldGo(unknown, places=tuple(unread_tables(erasable)))
    shared = shared_values(erasable, persons)
    rows = _rows(erasable, persons, shared)
    lost = [table for table in rows if rows[table].get(MAIN)]
    sums = find_sums(erasable, persons, lost, shared)
    return WouldGo(
        unknown,
        rows,
        _files(erasable, persons, shared),
        sums.names,
        sums.kept,
        (
            *scrub_places(
                erasable.settings, by_all_names(erasable, persons), shared, is_dry=True
            ),
            *unread_tables(erasable),
        ),
        cost_of_erasure(erasable),
    )


def _rows(
    erasable: Erasable, persons: Sequence[Person], shared: frozenset[str]
) -> dict[str, dict[str, int]]:
    rows: dict[str, Counter[str]] = {}
    # A table may hold people in several ways, such as the winner and the loser of a match.
    for holder, theirs in erasable.holders(persons):
        people = people_in(holder, theirs, shared)
        counts = count_rows(erasable.engine, erasable.tables[holder.table], people)
        if counts:
            rows.setdefault(holder.table, Counter()).update(counts)
    return {table: dict(counts) for table, counts in rows.items()}


def _files(
    erasable: Erasable, persons: Sequence[Person], shared: frozenset[str]
) -> dict[str, int]:
    files: Counter[str] = Counter()
    for feed, holder, theirs in erasable.feeds_of(persons):
        people = people_in(holder, theirs, shared)
        files.update(find_in_files(erasable.store, feed, people, home=erasable.settings.home))
    return dict(files)
