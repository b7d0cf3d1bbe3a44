"""Alerts and what is open of them: each file under the lock of those that write it.

Dagster's storage comes before: the next round of monitoring would tell anew what still stands
there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.alert_state import state_file, state_lock
from lakehouse.monitoring.silences import silences_file, silences_lock
from lakehouse.monitoring.sinks import FILE_NAME
from lakehouse.orchestration.incident_reports import report_files, reports_lock
from lakehouse.privacy.places.contents import Scrubbed, scrub_text
from lakehouse.privacy.places.file_patching import patch_file
from lakehouse.privacy.places.scrubbed_place import Outcome, ScrubbedPlace
from lakehouse.privacy.places.value_finder import ValueFinder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

_WAIT_SECONDS = 60.0
"""A round of monitoring sends for half a minute at most."""


@dataclass(frozen=True)
class _Guarded:
    """Files, and the lock under which they change."""

    files: Callable[[], Iterable[Path]]
    lock: Callable[[], AbstractContextManager[None]]


def alert_files(settings: Settings) -> list[Path]:
    """Return the files that are scrubbed under a lock, whether they are there or not."""
    return [file for guarded in _guarded(settings) for file in guarded.files()]


def scrub_alerts(
    finder: ValueFinder, settings: Settings, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Overwrite the values in the record of alerts, in what is open or on its way, in silences
    and in reports.
    """
    for guarded in _guarded(settings):
        files = [file for file in guarded.files() if file.is_file()]
        results = [_scrub(finder, file, is_dry=True) for file in files]
        problem = ""
        if not is_dry and any(result.erased for result in results):
            try:
                with guarded.lock():
                    results = [_scrub(finder, file, is_dry=False) for file in files]
            except LakehouseError as error:
                problem = str(error)
        for file, result in zip(files, results, strict=True):
            yield from _places(str(file.relative_to(settings.home)), result, problem)


def _guarded(settings: Settings) -> tuple[_Guarded, ...]:
    state = (settings.home / FILE_NAME, state_file(settings))
    return (
        _Guarded(lambda: state, partial(state_lock, settings, _WAIT_SECONDS)),
        _Guarded(lambda: (silences_file(settings),), partial(silences_lock, settings)),
        _Guarded(partial(report_files, settings), partial(reports_lock, settings)),
    )


def _scrub(finder: ValueFinder, file: Path, *, is_dry: bool) -> Scrubbed:
    if file.name == FILE_NAME:
        # A line more may be on its way.
        erased, shared = patch_file(finder, file, is_dry=is_dry)
        return Scrubbed(b"", erased, shared)
    scrubbed = scrub_text(finder, file.read_bytes())
    if scrubbed.erased and not is_dry:
        replace_bytes(file, scrubbed.content)
    return scrubbed


def _places(name: str, result: Scrubbed, problem: str) -> Iterator[ScrubbedPlace]:
    if problem and result.erased:
        yield ScrubbedPlace(name, "busy", why=problem)
    elif result.erased or result.shared:
        outcome: Outcome = "erased" if result.erased else "kept"
        yield ScrubbedPlace(name, outcome, result.erased, result.shared)
