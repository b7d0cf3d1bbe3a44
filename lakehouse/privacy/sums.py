"""Which tables have erased people in their sums, at any distance; it follows from the declarations
and from which tables lost rows.

A table of which each row is one person's loses their rows by itself. Any other that is computed
from it may have them in its sums, and so may all that is computed from that.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lakehouse.privacy.erasable import Erasable
from lakehouse.tables.person import Person


@dataclass(frozen=True)
class SumsTable:
    """A table that may have erased people in its sums, and by which of its sources."""

    name: str
    lost: frozenset[str] = frozenset()
    """Those that lost rows which the table does not lose by itself."""
    anew: frozenset[str] = frozenset()
    """Those that are computed anew themselves."""


@dataclass(frozen=True)
class Sums:
    """What has erased people in its sums."""

    tables: tuple[SumsTable, ...] = ()
    """Tables that are to be computed anew, sources first."""
    kept: tuple[str, ...] = ()
    """Tables that keep the sums that they had, as declared; and those that are computed from such
    alone, so that they would get the same again.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables that are to be computed anew."""
        return tuple(table.name for table in self.tables)


def find_sums(
    erasable: Erasable,
    persons: Iterable[Person],
    lost: Collection[str],
    shared: Collection[str] = (),
) -> Sums:
    """Return the tables that have some people in their sums, of those that are there.

    :param lost: the tables whose main loses rows of them.
    :param shared: values of theirs that somebody else has too.
    """
    own = set(_losing_rows(erasable, persons, is_shared=bool(shared)))
    quarantines = {one.quarantine.name for one in erasable.tables.values() if one.quarantine}
    tables: dict[str, SumsTable] = {}
    kept: list[str] = []
    for name in erasable.in_order():
        if name in quarantines or not erasable.engine.catalog.has(name):
            continue
        sources = set(erasable.sources.get(name, ())) - {name}
        table = SumsTable(
            name,
            lost=frozenset() if name in own else frozenset(sources & set(lost)),
            anew=frozenset(sources & set(tables)),
        )
        if table.lost or table.anew:
            if erasable.tables[name].on_erasure == "keep":
                kept.append(name)
            else:
                tables[name] = table
        elif name not in own and sources & set(kept):
            kept.append(name)
    return Sums(tuple(tables.values()), tuple(kept))


def _losing_rows(
    erasable: Erasable, persons: Iterable[Person], *, is_shared: bool
) -> Iterable[str]:
    """Yield the tables whose rows are each one person's, so that none of theirs stays.

    A row that is found by an address, and not by an id, stays where somebody else has it too.
    """
    for holder, _ in erasable.holders(persons):
        if holder.is_by_id or (holder.row_column is not None and not is_shared):
            yield holder.table
