"""Tells each write as events of OpenLineage: in a file, and at an HTTP address that the settings
name.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.iceberg.metadata.write_result import Outcome, Published
from lakehouse.lineage.delivery import Delivery
from lakehouse.lineage.event_log import EventLog
from lakehouse.lineage.events import EventMaker, Json
from lakehouse.lineage.names import DatasetNames, run_id_of
from lakehouse.lineage.open_runs import OpenRuns
from lakehouse.settings import Settings

_logger = logging.getLogger("lakehouse.lineage")
NAMESPACE = "lakehouse"
"""What jobs are told under where the lakehouse has no name."""


@dataclass(frozen=True)
class OpenLineageEvents:
    """Tells of writes: one START, and one COMPLETE, FAIL or ABORT, for each write id.

    What keeps an event from being told is logged; the write goes on, and where its end was not
    told, the next writer of the table tells it.
    """

    settings: Settings
    catalog: Catalog

    @cached_property
    def log(self) -> EventLog:
        """The file of events."""
        return EventLog(self.settings.openlineage_file)

    @cached_property
    def _open_runs(self) -> OpenRuns:
        return OpenRuns(self.log.folder / "open")

    @cached_property
    def _maker(self) -> EventMaker:
        names = DatasetNames(self.catalog, self.settings.region)
        return EventMaker(self.settings.name or NAMESPACE, names, self.settings.warehouse)

    def begun(self, write: BegunWrite) -> None:
        """Tell that a write begins."""

        def tell() -> None:
            start = self._maker.start(write)
            self._open_runs.begin(write.table.name, write.write_id, start)
            self.log.append(start)

        _attempt(tell)

    def ended(self, write: BegunWrite, outcome: Outcome) -> None:
        """Tell what came of a write."""
        self._end(write, lambda: self._maker.end(write, outcome))

    def failed(self, write: BegunWrite, error: BaseException, *, lost_race: bool) -> None:
        """Tell that a write published nothing."""
        self._end(write, lambda: self._maker.failure(write, error, lost_race=lost_race))

    def unended(self, table: str) -> Sequence[str]:
        """Return the ids of the writes of a table whose end was not told."""
        return self._open_runs.of(table)

    def found_ended(self, write: BegunWrite, published: Published | None) -> None:
        """Tell what came of a write whose process did not say; what it told is not told
        again.
        """

        def tell() -> None:
            start = self._open_runs.start(write.table.name, write.write_id)
            told = self.log.recorded(run_id_of(write.write_id))
            if "START" not in told:
                self.log.append(start)
            if not told - {"START"}:
                self.log.append(self._maker.end_of_dead(start, write, published))
            self._open_runs.end(write.table.name, write.write_id)

        _attempt(tell)
        send_waiting(self.settings)

    def _end(self, write: BegunWrite, make: Callable[[], Json]) -> None:
        def tell() -> None:
            self.log.append(make())
            self._open_runs.end(write.table.name, write.write_id)

        _attempt(tell)
        send_waiting(self.settings)


def send_waiting(settings: Settings) -> None:
    """Send the events that wait for the address of the settings, where they name one."""
    if settings.openlineage_url is None:
        return
    delivery = Delivery(
        EventLog(settings.openlineage_file),
        settings.openlineage_url,
        settings.openlineage_key,
        _logger,
    )
    _attempt(delivery.send_waiting)


def _attempt(tell: Callable[[], object]) -> None:
    """Do what no write may fail for: a full disk, a file of another user."""
    try:
        tell()
    except Exception as error:
        _logger.warning("An event of OpenLineage was not told: %s.", type(error).__name__)
