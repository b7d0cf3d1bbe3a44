"""Tables that cannot be read here, such as those that others make in the same catalog with types
that only Spark reads: whether they hold people cannot be told, and whoever writes them has to see
to it.
"""

from collections.abc import Iterable, Iterator

from lakehouse.errors import TableNotFound, TableUnreadable
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.verifier.report import NotProved

_OWNER = "who writes it"


def unread_tables(erasable: Erasable) -> Iterator[ScrubbedPlace]:
    """Yield the tables that cannot be looked through."""
    catalog = erasable.engine.catalog.within(erasable.tables).with_cached_locations()
    for name in sorted(catalog.metadata_locations()):
        try:
            catalog.load(name)
        except TableNotFound:
            # It was dropped meanwhile.
            continue
        except TableUnreadable as error:
            why = f"It was not looked through: {error.args[0]}"
            yield ScrubbedPlace(f"the table {name}", "not reached", why=why, owner=_OWNER)


def gaps_of_unread(erasable: Erasable, said: Iterable[ScrubbedPlace]) -> tuple[NotProved, ...]:
    """Return what a search says nothing about, tables that cannot be looked through.

    :param said: places that somebody was told to see to: these do not stand in the way.
    """
    known = {place.place for place in said}
    return tuple(
        NotProved(
            place.place, "not looked into", place.why, is_blocking=place.place not in known
        )
        for place in unread_tables(erasable)
    )
