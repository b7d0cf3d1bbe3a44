"""Which tables hold a person, and by which columns; it follows from the declarations.

A subject is a kind of person, such as customers. The columns that stand for one are those that
tables declare as `subject`, and what is computed from them. Two tables that call their subject by
one name mean the same kind of person, also where neither reads the other: a name stands for one
kind in the whole lakehouse. Former names (`renamed_from`) connect a column with itself, and with
the columns of tables that read it.

What identifies a person directly belongs to the subject of the table that declares it `personal`.
A column of the same name in a table without a subject may hold a person's values as well, so that
it is searched by them. A subject column that is personal elsewhere is both: the address that a
newsletter knows its readers by is also one of a customer's.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lakehouse.iceberg.erasure.suppression_list import RowTimestamp
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import OnErasure
from lakehouse.tables.feed import Feed
from lakehouse.tables.people import Origin, Origins, Sources, names_of, origins_of
from lakehouse.tables.table import IcebergTable

T = TypeVar("T")


@dataclass(frozen=True)
class Holder:
    """A table that holds people of a subject, and the columns by which they are found there.

    Of a table with a subject of its own the whole row is the person's that `row_column` names.
    In any other column only a value is: the row may tell of somebody else, or of nobody.
    """

    table: str
    ids: tuple[Column, ...]
    """Columns whose values stand for the person."""
    personal: tuple[Column, ...]
    """Columns whose values identify the person directly."""
    row_column: Column | None
    """The one of them that tells whose a row is; None where the table has no subject, or one of
    another kind.
    """
    on_erasure: OnErasure

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.ids, *self.personal)))

    @property
    def is_by_id(self) -> bool:
        """Whether its rows are people's, told by what stands for them."""
        return self.row_column is not None and self.row_column in self.ids


@dataclass(frozen=True)
class Subject:
    """A kind of person, and what holds people of it."""

    name: str
    """The column that stands for a person, as most tables call it."""
    names: frozenset[str]
    """All that tables call it, in lower case."""
    personal: tuple[frozenset[str], ...]
    """What identifies people directly: for each thing, what tables call the column, in lower
    case.
    """
    holders: tuple[Holder, ...]

    def personal_names(self, name: str) -> frozenset[str]:
        """Return what tables call the personal column of a name; nothing where it is none."""
        for names in self.personal:
            if name.lower() in names:
                return names
        return frozenset()


def find_subjects(tables: Mapping[str, IcebergTable], sources: Sources) -> tuple[Subject, ...]:
    """Return the kinds of people that some tables hold, by name.

    A personal column that belongs to no subject is one of its own: nobody but its values stands
    for a person there.

    :param sources: by table, the tables that it is computed from.
    """
    origins = origins_of(tables, sources)
    kinds = list(_kinds(tables, origins))
    taken: set[Origin] = set()
    subjects = []
    for kind in kinds:
        things = _personal_things(tables, origins, kind)
        taken.update(*things)
        subjects.append(_subject(tables, origins, kind, things))
    for thing in _connected(_loose(tables, origins) - taken, origins):
        subjects.append(_subject(tables, origins, thing, []))
    return tuple(sorted(subjects, key=lambda subject: subject.name))


def _kinds(
    tables: Mapping[str, IcebergTable], origins: Mapping[str, Origins]
) -> Iterator[frozenset[Origin]]:
    declared = {
        Origin(table.name, table.subject, is_subject=True)
        for table in tables.values()
        if table.subject
    }
    yield from _connected(declared, origins)


def _personal_things(
    tables: Mapping[str, IcebergTable],
    origins: Mapping[str, Origins],
    kind: frozenset[Origin],
) -> list[frozenset[Origin]]:
    """Return what identifies people of a kind: each thing as the columns that are declared for
    it.
    """
    own_tables = {origin.table for origin in kind}
    own = {
        Origin(name, column, is_subject=False)
        for name in own_tables
        for column in tables[name].personal_columns
    }
    others = set(_subjects_of_others(tables, kind))
    things = _connected(own | _loose(tables, origins) | others, origins)
    return [thing for thing in things if thing & own]


def _subjects_of_others(
    tables: Mapping[str, IcebergTable], kind: frozenset[Origin]
) -> Iterator[Origin]:
    for table in tables.values():
        if table.subject:
            origin = Origin(table.name, table.subject, is_subject=True)
            if origin not in kind:
                yield origin


def _loose(
    tables: Mapping[str, IcebergTable], origins: Mapping[str, Origins]
) -> frozenset[Origin]:
    """Return the personal columns of tables that have no subject."""
    loose: set[Origin] = set()
    for name, columns in origins.items():
        for found in columns.values():
            loose.update(
                origin
                for origin in found
                if origin.table == name and tables[name].subject is None
            )
    return frozenset(loose)


def _connected(
    wanted: Iterable[Origin], origins: Mapping[str, Origins]
) -> list[frozenset[Origin]]:
    """Return declared columns in groups: those of one name, and those that come together in a
    column.
    """
    wanted = sorted(wanted)
    together: list[set[Origin]] = []
    by_name: dict[str, set[Origin]] = {}
    for origin in wanted:
        by_name.setdefault(origin.column.lower(), set()).add(origin)
    together.extend(by_name.values())
    for columns in origins.values():
        together.extend(set(found) & set(wanted) for found in columns.values())
    return sorted(_joined(together), key=min)


def _joined(sets: Iterable[Collection[T]]) -> list[frozenset[T]]:
    """Return sets with no common member, by joining those that have one."""
    joined: list[frozenset[T]] = []
    for members in sets:
        some = frozenset(members)
        touched = [one for one in joined if one & some]
        joined = [one for one in joined if not one & some]
        joined.append(some.union(*touched))
    return [one for one in joined if one]


def _subject(
    tables: Mapping[str, IcebergTable],
    origins: Mapping[str, Origins],
    kind: frozenset[Origin],
    things: list[frozenset[Origin]],
) -> Subject:
    holders = []
    identifying = frozenset().union(*things)
    for name, table in sorted(tables.items()):
        ids = _columns(table, origins[name], kind)
        personal = _columns(table, origins[name], identifying)
        if ids or personal:
            rows = [column for column in (*ids, *personal) if column.name == table.subject]
            row_column = rows[0] if rows else None
            holders.append(Holder(name, ids, personal, row_column, table.on_erasure))
    # A former name may be that of another column today: both are searched for what either had.
    names = [_names(tables, origins, thing) for thing in things]
    return Subject(
        name=_most_common(kind),
        names=_names(tables, origins, kind),
        personal=tuple(sorted(_joined(names), key=min)),
        holders=tuple(holders),
    )


def _columns(
    table: IcebergTable, origins: Origins, wanted: frozenset[Origin]
) -> tuple[Column, ...]:
    return tuple(table.column(name) for name in origins if origins[name] & wanted)


def _names(
    tables: Mapping[str, IcebergTable],
    origins: Mapping[str, Origins],
    wanted: frozenset[Origin],
) -> frozenset[str]:
    names: set[str] = set()
    for name, table in tables.items():
        for column in _columns(table, origins[name], wanted):
            names |= names_of(column)
    return frozenset(names)


def _most_common(kind: frozenset[Origin]) -> str:
    names = sorted(origin.column for origin in kind)
    return max(names, key=names.count)


def subject_names(subjects: Iterable[Subject]) -> dict[str, Collection[str]]:
    """Return, by table, all that any table calls its subject; of tables that have one."""
    names: dict[str, Collection[str]] = {}
    for subject in subjects:
        for holder in subject.holders:
            if holder.is_by_id:
                names[holder.table] = subject.names
    return names


def row_moments(
    tables: Mapping[str, IcebergTable], feeds: Iterable[Feed], sources: Sources
) -> dict[str, RowTimestamp]:
    """Return, by table, the column that tells when a row was made; of tables that have one.

    It is the first of the table's `versions.newest`, else the moment that its feed declares, else
    the moment of a table that it is computed from, where it has that column too. A quarantine has
    what its table has.

    :param sources: by table, the tables that it is computed from.
    """
    moments = {
        feed.table: RowTimestamp(feed.moment, feed.time_zone) for feed in feeds if feed.moment
    }
    for table in tables.values():
        if table.versions:
            moments[table.name] = _newest(table)
    is_changing = True
    while is_changing:
        inherited = _inherited(tables, moments, sources)
        is_changing = bool(inherited)
        moments |= inherited
    for table in tables.values():
        if table.quarantine and table.name in moments:
            moments[table.quarantine.name] = moments[table.name]
    return moments


def _newest(table: IcebergTable) -> RowTimestamp:
    assert table.versions is not None
    column = table.versions.newest[0]
    cast = table.casts.get(column)
    return RowTimestamp(column, cast.time_zone) if cast else RowTimestamp(column)


def _inherited(
    tables: Mapping[str, IcebergTable], moments: Mapping[str, RowTimestamp], sources: Sources
) -> dict[str, RowTimestamp]:
    """Return the moments of tables that have none yet, from what they are computed from."""
    inherited = {}
    for table in tables.values():
        for source in sorted(sources.get(table.name, ())):
            moment = moments.get(source)
            if moment and table.name not in moments and moment.column in table.column_names:
                inherited[table.name] = moment
    return inherited
