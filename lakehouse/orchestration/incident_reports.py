"""Reports of incidents that no detector finds, such as a dead server or a pipe in an inbox, and
of publishes outside of runs.

Any process adds a report to a file in the home, also if Dagster and Spark are down. The next
round of `lakehouse.alerts` sends it, within ten seconds while `lakehouse dev` runs.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from lakehouse.settings import Settings
from lakehouse.storage.file_lock import brief_lock
from lakehouse.storage.json_files import read_json, write_json

Severity = Literal["error", "warn"]
_REMEMBERED = timedelta(days=7)


@dataclass(frozen=True)
class Report:
    """A failure outside of detectors. No text can contain a value of a row."""

    key: str
    """Identifies the failure, such as `spark server` or `inbox fruits/pipe`."""
    title: str
    lines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    severity: Severity = "error"
    table: str = ""
    """The affected table, by which alerts are routed and muted."""


@dataclass(frozen=True)
class Note:
    """A report at a timestamp; `resolved` describes how it was resolved then."""

    report: Report
    at: datetime
    resolved: str = ""
    published_run: str = ""
    """The blocked run that a user published, which resolves the incidents of its table."""


def report_firing(settings: Settings, report: Report) -> None:
    """Report a failure; the same report as the last one is not added again."""
    _add(settings, Note(report, datetime.now(UTC)))


def report_resolved(settings: Settings, key: str, how: str) -> None:
    """Report that a failure is resolved, if it was reported."""
    last = _last(read_reports(settings)).get(key)
    if last and not last.resolved:
        _add(settings, Note(last.report, datetime.now(UTC), how))


def report_published(settings: Settings, table: str, run_id: str, how: str) -> None:
    """Report that a user published a table as of a blocked run."""
    report = Report(f"published {table}", f"{table} was published", table=table)
    _add(settings, Note(report, datetime.now(UTC), how, run_id))


def read_reports(settings: Settings) -> list[Note]:
    """Return the remembered reports, oldest first."""
    file = reports_file(settings)
    notes: list[Note] = read_json(file, list[Note]) if file.is_file() else []
    return notes


def unresolved_keys(settings: Settings, prefix: str) -> set[str]:
    """Return the keys with a prefix that are not resolved."""
    last = _last(read_reports(settings))
    return {key for key, note in last.items() if key.startswith(prefix) and not note.resolved}


def reports_file(settings: Settings) -> Path:
    """Return the path of the reports."""
    return settings.home / "alerts" / "reports.json"


def reports_lock(settings: Settings) -> AbstractContextManager[None]:
    """Lock the reports.

    :raises LakehouseError: if another process holds the lock for too long.
    """
    return brief_lock(reports_file(settings).with_suffix(".lock"))


def _last(notes: Sequence[Note]) -> dict[str, Note]:
    return {note.report.key: note for note in notes}


def _add(settings: Settings, note: Note) -> None:
    with reports_lock(settings):
        notes = read_reports(settings)
        last = _last(notes)
        known = last.get(note.report.key)
        if known and replace(known, at=note.at) == note:
            return
        remembered = [
            one
            for one in notes
            if (one is last[one.report.key] and not one.resolved)
            or note.at - one.at < _REMEMBERED
        ]
        write_json(reports_file(settings), [*remembered, note], list[Note], indent=1)
