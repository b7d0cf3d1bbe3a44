"""An ingest that is about to die, at one exact point of its life."""

from collections.abc import Callable
from typing import Any

from lakehouse.cli.program import run
from lakehouse.ingestion import archive, land
from lakehouse_tests.processes import kill_this_process


def _die_before_the_archive() -> None:
    land.finish = lambda *_: kill_this_process()


def _die_after_the_first_archived_file() -> None:
    real = archive.move_once

    def dying(*given: Any, **named: Any) -> None:
        real(*given, **named)
        kill_this_process()

    archive.move_once = dying


def _die_after_the_archive() -> None:
    real = land.finish

    def dying(*given: Any) -> None:
        real(*given)
        kill_this_process()

    land.finish = dying


DEATHS: dict[str, Callable[[], None]] = {
    "between publishing and the archive": _die_before_the_archive,
    "in the middle of the archive": _die_after_the_first_archived_file,
    "between bronze and silver": _die_after_the_archive,
}


def ingest_and_die(at: str) -> int:
    """Ingest what waits as the command does, and die on the way."""
    DEATHS[at]()
    return run(("ingest", "fruits"))
