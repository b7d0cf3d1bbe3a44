"""Takes persons out of every place that is neither a table nor a delivered file."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from lakehouse.privacy.places.alert_files import scrub_alerts
from lakehouse.privacy.places.contents import scrub_content
from lakehouse.privacy.places.csv_columns import has_columns, patch_columns
from lakehouse.privacy.places.elsewhere import places_elsewhere, sent_alerts
from lakehouse.privacy.places.file_patching import count_values, patch_file
from lakehouse.privacy.places.home_files import HomeFile, Kind, home_files
from lakehouse.privacy.places.left_folders import remove_left_folders
from lakehouse.privacy.places.overwriting import overwritten
from lakehouse.privacy.places.scrubbed_place import Outcome, ScrubbedPlace
from lakehouse.privacy.places.sqlite_file import scrub_sqlite
from lakehouse.privacy.places.value_finder import ValueFinder
from lakehouse.privacy.places.wanted_values import WantedValues
from lakehouse.runtime.deployment import masking_keys_in_use
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.tables.person import Person

_OPERATOR = "the operator of this home"


def scrub_places(
    settings: Settings,
    persons: Iterable[Person],
    shared: Collection[str] = (),
    *,
    gone_at: datetime | None = None,
    is_dry: bool = False,
) -> tuple[ScrubbedPlace, ...]:
    """Overwrite the values of persons wherever they stand below the home, but for the files of
    tables, delivered files and requests.

    Values that are distinctive are searched everywhere, in every form; others only where
    something says of which column they are: a key of JSON, `column=value` in a text, a column of
    SQLite. Killed at any moment, the next call does the rest; one after the last finds nothing.

    :param shared: values that are left where they stand, as somebody else has them too; also
        longer ones of others, which contain a value.
    :param gone_at: since when no table and no delivered file has the persons: what a living
        Spark spilled later is without them. None where they may still be read.
    :param is_dry: whether is only counted what would be overwritten and removed.
    :returns: the places in which something was found, or which could not be looked through.
    """
    people = tuple(persons)
    if not people:
        return ()
    wanted = WantedValues.of(people, shared, masking_keys_in_use(settings))
    finder = ValueFinder(wanted)
    places = list(remove_left_folders(settings, gone_at, is_dry=is_dry))
    for file in home_files(settings):
        places += _scrub(finder, settings, file, is_dry=is_dry)
    alerts = list(scrub_alerts(finder, settings, is_dry=is_dry))
    if any(place.values for place in alerts):
        alerts += sent_alerts(settings)
    return (*places, *alerts, *places_elsewhere(settings), *_said(wanted))


def _scrub(
    finder: ValueFinder, settings: Settings, file: HomeFile, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    name = _shown(finder, settings, file.path)
    try:
        yield from _TREATMENTS[file.kind](finder, file.path, name, is_dry)
    except FileNotFoundError:
        return
    except OSError as error:
        yield _not_reached(name, f"{type(error).__name__}: {error.strerror}.")
    if overwritten(finder, _path(settings, file.path)).erased:
        yield _not_reached(name, "A value stands in its name.")


def _scrub_sqlite(
    finder: ValueFinder, file: Path, name: str, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    result = scrub_sqlite(finder, file, is_dry=is_dry)
    if result.is_busy:
        why = "Another process held it; the next call does the rest."
        yield ScrubbedPlace(name, "busy", result.erased, result.shared, why=why)
    elif not result.problem:
        yield from _found(name, result.erased, result.shared)
    left = {
        "SQLite could not read or write it": bool(result.problem),
        "cells are of an unknown kind": result.not_read,
        "values stand in names, by which things are found": result.kept_names,
        "values stand in bytes that no row has": 0 if result.kept_names else result.raw_values,
    }
    for what, count in left.items():
        if count:
            yield _not_reached(name, f"{what}: {result.problem or count}.")


def _patch(finder: ValueFinder, file: Path, name: str, is_dry: bool) -> Iterator[ScrubbedPlace]:
    in_columns = 0
    if has_columns(file):
        in_columns = patch_columns(finder.wanted, file, is_dry=is_dry)
    erased, shared = patch_file(finder, file, is_dry=is_dry)
    yield from _found(name, erased + in_columns, shared)


def _rewrite(
    finder: ValueFinder, file: Path, name: str, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    status = file.stat()
    scrubbed = scrub_content(finder, file.read_bytes())
    if not scrubbed.is_read:
        yield _not_reached(name, "What is compressed in it is of an unknown kind.")
    if scrubbed.erased and not is_dry:
        if file.stat().st_mtime_ns != status.st_mtime_ns:
            yield ScrubbedPlace(name, "busy", why="Another process writes it.")
            return
        replace_bytes(file, scrubbed.content, mode=status.st_mode & 0o777)
    yield from _found(name, scrubbed.erased, scrubbed.shared)


def _look(finder: ValueFinder, file: Path, name: str, _: bool) -> Iterator[ScrubbedPlace]:
    if count_values(finder, file):
        yield _not_reached(name, "It is a setting, and his to change.")


def _say(kind: Kind) -> "_Treatment":
    def say(_: ValueFinder, __: Path, name: str, ___: bool) -> Iterator[ScrubbedPlace]:
        yield _not_reached(name, f"It is {kind.value}, and was not looked through.")

    return say


_Treatment = Callable[[ValueFinder, Path, str, bool], Iterator[ScrubbedPlace]]
_TREATMENTS: Mapping[Kind, _Treatment] = {
    Kind.SQLITE: _scrub_sqlite,
    Kind.TEXT: _patch,
    Kind.GZIP: _rewrite,
    Kind.SETTING: _look,
    Kind.LINK: _say(Kind.LINK),
    Kind.BINARY: _say(Kind.BINARY),
    Kind.UNREADABLE: _say(Kind.UNREADABLE),
}


def _found(name: str, erased: int, shared: int) -> Iterator[ScrubbedPlace]:
    outcome: Outcome = "erased" if erased else "kept"
    if erased or shared:
        yield ScrubbedPlace(name, outcome, erased, shared)


def _said(wanted: WantedValues) -> Iterator[ScrubbedPlace]:
    if count := wanted.not_distinctive:
        yield ScrubbedPlace(
            "values that are not distinctive",
            "kept",
            why=(
                f"{count} are short, or integers of few digits: they were overwritten where their"
                " column was named beside them, and are proved by column reads."
            ),
        )


def _not_reached(name: str, why: str) -> ScrubbedPlace:
    return ScrubbedPlace(name, "not reached", files=1, why=why, owner=_OPERATOR)


def _shown(finder: ValueFinder, settings: Settings, file: Path) -> str:
    """Return a path from the home, without the values that stand in it."""
    shown = overwritten(finder, _path(settings, file)).content
    return shown.decode(errors="backslashreplace")


def _path(settings: Settings, file: Path) -> bytes:
    return os.fsencode(file.relative_to(settings.home))
