"""Emits OpenLineage events of writes to a file and to a configured HTTP endpoint."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.iceberg.metadata.write_result import Outcome, Published
from lakehouse.lineage.delivery import Delivery
from lakehouse.lineage.event_log import EventLog
from lakehouse.lineage.events import EventMaker, Json
from lakehouse.lineage.names import DatasetNames, run_id_of
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text

_logger = logging.getLogger("lakehouse.lineage")
NAMESPACE = "lakehouse"
"""Default job namespace if the lakehouse has no name."""


@dataclass(frozen=True)
class OpenRuns:
    """Open writes of a home by table; used under the table lock."""

    folder: Path

    def begin(self, table: str, write_id: str, start: dict[str, Any]) -> None:
        """Record a write before its START event is emitted."""
        replace_text(self._file(table, write_id), json.dumps(start, ensure_ascii=False))

    def end(self, table: str, write_id: str) -> None:
        """Remove a write after its end event."""
        self._file(table, write_id).unlink(missing_ok=True)

    def of(self, table: str) -> list[str]:
        """Return the open write ids of a table, oldest first."""
        folder = self.folder / table
        return sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []

    def start(self, table: str, write_id: str) -> dict[str, Any]:
        """Return the START event of a write."""
        event: dict[str, Any] = json.loads(
            self._file(table, write_id).read_text(encoding="utf-8")
        )
        return event

    def _file(self, table: str, write_id: str) -> Path:
        return self.folder / table / f"{write_id}.json"


@dataclass(frozen=True)
class OpenLineageEvents:
    """Emits one START and one COMPLETE, FAIL or ABORT event for each write id.

    Errors are logged and do not fail the write; the next writer of the table emits a missing
    end event.
    """

    settings: Settings
    catalog: Catalog

    @cached_property
    def log(self) -> EventLog:
        """The event file."""
        return EventLog(self.settings.openlineage_file)

    @cached_property
    def _open_runs(self) -> OpenRuns:
        return OpenRuns(self.log.folder / "open")

    @cached_property
    def _maker(self) -> EventMaker:
        names = DatasetNames(self.catalog, self.settings.region)
        return EventMaker(self.settings.name or NAMESPACE, names, self.settings.warehouse)

    def begun(self, write: BegunWrite) -> None:
        """Emit the start of a write."""

        def emit() -> None:
            start = self._maker.start(write)
            self._open_runs.begin(write.table.name, write.write_id, start)
            self.log.append(start)

        _attempt(emit)

    def finished(self, write: BegunWrite, outcome: Outcome) -> None:
        """Emit the outcome of a write."""
        self._end(write, lambda: self._maker.end(write, outcome))

    def failed(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> None:
        """Emit the failure of a write."""
        self._end(write, lambda: self._maker.failure(write, error, had_conflict=had_conflict))

    def unended(self, table: str) -> Sequence[str]:
        """Return the ids of writes of a table without an end event."""
        return self._open_runs.of(table)

    def resolved(self, write: BegunWrite, published: Published | None) -> None:
        """Emit the missing events of a write whose process crashed."""

        def emit() -> None:
            start = self._open_runs.start(write.table.name, write.write_id)
            recorded = self.log.recorded(run_id_of(write.write_id))
            if "START" not in recorded:
                self.log.append(start)
            if not recorded - {"START"}:
                self.log.append(self._maker.end_of_crashed(start, write, published))
            self._open_runs.end(write.table.name, write.write_id)

        _attempt(emit)
        send_waiting(self.settings)

    def _end(self, write: BegunWrite, make: Callable[[], Json]) -> None:
        def emit() -> None:
            self.log.append(make())
            self._open_runs.end(write.table.name, write.write_id)

        _attempt(emit)
        send_waiting(self.settings)


def send_waiting(settings: Settings) -> None:
    """Send queued events to the configured endpoint, if any."""
    if settings.openlineage_url is None:
        return
    delivery = Delivery(
        EventLog(settings.openlineage_file),
        settings.openlineage_url,
        settings.openlineage_key,
        _logger,
    )
    _attempt(delivery.send_waiting)


def _attempt(emit: Callable[[], object]) -> None:
    """Log errors that must not fail a write, such as a full disk."""
    try:
        emit()
    except Exception as error:
        _logger.warning("An event of OpenLineage was not told: %s.", type(error).__name__)
