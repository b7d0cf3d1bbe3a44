"""Emits OpenLineage events of writes to a file and to a configured HTTP endpoint."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.iceberg.metadata.write_result import Outcome, Published
from lakehouse.lineage.event_delivery import send_events
from lakehouse.lineage.event_log import EventLog
from lakehouse.lineage.events import EventMaker, Json
from lakehouse.lineage.names import DatasetNames, run_id_of
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text

_logger = logging.getLogger("lakehouse.lineage")
NAMESPACE = "lakehouse"
"""Default job namespace if the lakehouse has no name."""


@dataclass(frozen=True)
class OpenLineageEvents:
    """Emits one START and one COMPLETE, FAIL or ABORT event for each write id.

    Errors are logged and do not fail the write. The START events of open writes are stored in
    one file each, so that the next writer of the table can emit a missing end event.
    """

    settings: Settings
    catalog: Catalog

    @cached_property
    def log(self) -> EventLog:
        """The event file."""
        return EventLog(self.settings.openlineage_file)

    @cached_property
    def _maker(self) -> EventMaker:
        names = DatasetNames(self.catalog, self.settings.region)
        return EventMaker(self.settings.name or NAMESPACE, names, self.settings.warehouse)

    def begun(self, write: BegunWrite) -> None:
        """Emit the start of a write."""

        def emit() -> None:
            start = self._maker.start(write)
            replace_text(self._open_file(write), json.dumps(start, ensure_ascii=False))
            self.log.append(start)

        _attempt(emit)

    def finished(self, write: BegunWrite, outcome: Outcome) -> None:
        """Emit the outcome of a write."""
        self._end(write, lambda: self._maker.end(write, outcome))

    def failed(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> None:
        """Emit the failure of a write."""
        self._end(write, lambda: self._maker.failure(write, error, had_conflict=had_conflict))

    def unended(self, table: str) -> Sequence[str]:
        """Return the ids of writes of a table without an end event, oldest first."""
        return sorted(file.stem for file in self._open_folder(table).glob("*.json"))

    def resolved(self, write: BegunWrite, published: Published | None) -> None:
        """Emit the missing events of a write whose process crashed."""

        def emit() -> None:
            start = json.loads(self._open_file(write).read_text(encoding="utf-8"))
            recorded = self.log.recorded(run_id_of(write.write_id))
            if "START" not in recorded:
                self.log.append(start)
            if not recorded - {"START"}:
                self.log.append(self._maker.end_of_crashed(start, write, published))
            self._close(write)

        _attempt(emit)
        send_waiting(self.settings)

    def _end(self, write: BegunWrite, make: Callable[[], Json]) -> None:
        def emit() -> None:
            self.log.append(make())
            self._close(write)

        _attempt(emit)
        send_waiting(self.settings)

    def _close(self, write: BegunWrite) -> None:
        self._open_file(write).unlink(missing_ok=True)

    def _open_folder(self, table: str) -> Path:
        return self.log.folder / "open" / table

    def _open_file(self, write: BegunWrite) -> Path:
        return self._open_folder(write.table.name) / f"{write.write_id}.json"


def send_waiting(settings: Settings) -> None:
    """Send queued events to the configured endpoint, if any."""
    url, log = settings.openlineage_url, EventLog(settings.openlineage_file)
    if url is not None:
        _attempt(lambda: send_events(log, url, settings.openlineage_key, _logger))


def _attempt(emit: Callable[[], None]) -> None:
    """Log errors that must not fail a write, such as a full disk."""
    try:
        emit()
    except Exception as error:
        _logger.warning("An OpenLineage event was not emitted: %s.", type(error).__name__)
