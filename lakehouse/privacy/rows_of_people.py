"""By what a row is known to be somebody's, and to be made before their erasure; it follows from the
declarations.
"""

from collections.abc import Collection, Iterable, Mapping

from lakehouse.iceberg.erasure.without_gone import Moment
from lakehouse.privacy.holders import Subject
from lakehouse.tables.feed import Feed
from lakehouse.tables.people import Sources
from lakehouse.tables.table import IcebergTable


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
) -> dict[str, Moment]:
    """Return, by table, the column that tells when a row was made; of tables that have one.

    It is the first of the table's `versions.newest`, else the moment that its feed declares, else
    the moment of a table that it is computed from, where it has that column too. A quarantine has
    what its table has.

    :param sources: by table, the tables that it is computed from.
    """
    moments = {feed.table: Moment(feed.moment, feed.time_zone) for feed in feeds if feed.moment}
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


def _newest(table: IcebergTable) -> Moment:
    assert table.versions is not None
    column = table.versions.newest[0]
    cast = table.casts.get(column)
    return Moment(column, cast.time_zone) if cast else Moment(column)


def _inherited(
    tables: Mapping[str, IcebergTable], moments: Mapping[str, Moment], sources: Sources
) -> dict[str, Moment]:
    """Return the moments of tables that have none yet, from what they are computed from."""
    inherited = {}
    for table in tables.values():
        for source in sorted(sources.get(table.name, ())):
            moment = moments.get(source)
            if moment and table.name not in moments and moment.column in table.column_names:
                inherited[table.name] = moment
    return inherited
