"""An ingest that is about to die, at one exact point of its life."""

from collections.abc import Callable
from typing import Any

from lakehouse.cli.program import run
from lakehouse.ingestion import archive, land
from lakehouse_tests.processes import kill_this_process


def _die_before_the_archive() -> None:
    _replace(land, "archive_files", lambda *_: kill_this_process())


def _die_after_the_first_archived_file() -> None:
    _replace(archive, "move_once", _dying_after(archive.move_once))


def _die_after_the_archive() -> None:
    _replace(land, "archive_files", _dying_after(land.archive_files))


def _dying_after(real: Callable[..., Any]) -> Callable[..., None]:
    def dying(*given: Any, **named: Any) -> None:
        real(*given, **named)
        kill_this_process()

    return dying


def _replace(module: Any, name: str, function: Callable[..., Any]) -> None:
    """Put a function in the place of one that is there: under another name nobody dies."""
    getattr(module, name)
    setattr(module, name, function)


DEATHS: dict[str, Callable[[], None]] = {
    "between publishing and the archive": _die_before_the_archive,
    "in the middle of the archive": _die_after_the_first_archived_file,
    "between bronze and silver": _die_after_the_archive,
}


def ingest_and_die(at: str) -> int:
    """Ingest what waits as the command does, and die on the way."""
    DEATHS[at]()
    return run(("ingest", "fruits"))
