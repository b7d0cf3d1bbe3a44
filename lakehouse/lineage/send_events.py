"""Emits OpenLineage events of writes to a file and to a configured HTTP endpoint.

The endpoint gets events in order, at least once, without blocking writes for long. Each waiting
event is a file in a folder; above a number of files, the oldest are deleted.
"""

import http.client
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError, TableBusy
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.values.write_events import BegunWrite, WriteListener
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.lineage.event_facets import EventMaker, Json
from lakehouse.lineage.names import DatasetNames
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import append_line, replace_bytes
from lakehouse.storage.file_lock import file_lock

MAX_BYTES = 16 * 2**20
"""Size limit of the file before rotation; one previous file is kept."""
_LOCK_SECONDS = 5.0
_SECONDS = 3.0
_MOST_WAITING = 10_000
"""Maximum number of events that wait for the endpoint."""
PAUSE_SECONDS = 60.0
"""Delay after an unsuccessful request."""
_TIMEOUT_SECONDS = 2.0
_TRY_AGAIN = (401, 403, 404, 408, 425, 429)
"""Retryable status codes. Other 4xx responses reject the event permanently; it is skipped."""


@dataclass(frozen=True)
class EventLog:
    """Events in a file, and older events in a second file next to it; `is_sent` also queues them.

    A line is written in one call, so readers never see partial lines; the next writer removes
    a partial line of a killed process.
    """

    path: Path
    is_sent: bool = False

    @property
    def earlier(self) -> Path:
        """The file with older events."""
        return self.path.with_name(f"{self.path.stem}.earlier{self.path.suffix}")

    @property
    def folder(self) -> Path:
        """Folder with state: waiting events."""
        return self.path.with_suffix("")

    def append(self, event: dict[str, Any]) -> None:
        """Append an event.

        :raises LakehouseError: another process locks the file for several seconds.
        """
        line = json.dumps(event, ensure_ascii=False).encode()
        with self.locked():
            if self.is_sent:
                replace_bytes(self.waiting_folder / f"{time.time_ns():020}.json", line)
            size = self.path.stat().st_size if self.path.is_file() else 0
            if size and size + len(line) > MAX_BYTES:
                self.path.replace(self.earlier)
            append_line(self.path, line)

    @property
    def waiting_folder(self) -> Path:
        """Folder with a file for each event that was not sent; names order them."""
        return self.folder / "waiting"

    def locked(self) -> AbstractContextManager[None]:
        """Lock the file against other writers and rotation.

        :raises LakehouseError: another process locks the file for several seconds.
        """
        busy = LakehouseError(
            f"{self.path} was locked by another process for {_LOCK_SECONDS:.0f} s.",
            next_step="No later write emits the event.",
        )
        return file_lock(self.folder / "write.lock", _LOCK_SECONDS, busy)


class _FollowsNothing(urllib.request.HTTPRedirectHandler):
    """Returns redirects as responses.

    A redirected POST would become a GET without the event, which a login page answers with 200,
    and would forward the key.
    """

    def redirect_request(self, *_: object) -> None:
        """Do not follow the redirect."""


_OPENER = urllib.request.build_opener(_FollowsNothing)


def send_events(log: EventLog, url: str, key: str | None, logger: logging.Logger) -> None:
    """Send queued events for a limited time, unless another process sends, or a request failed
    within the last minute.

    Neither the URL nor the key is logged: both can be secret.
    """
    try:
        with file_lock(log.folder / "send.lock", 0, TableBusy("Another process sends.")):
            _send(log, url, key, logger)
    except TableBusy:
        return


def _send(log: EventLog, url: str, key: str | None, logger: logging.Logger) -> None:
    failed, until = log.folder / "failed", time.monotonic() + _SECONDS
    if failed.exists() and time.time() - failed.stat().st_mtime < PAUSE_SECONDS:
        return
    waiting = sorted(log.waiting_folder.glob("*.json"))
    for file in waiting[:-_MOST_WAITING]:
        file.unlink()
    for file in waiting[-_MOST_WAITING:]:
        if time.monotonic() >= until:
            return
        problem, is_final = _post(url, key, file.read_bytes())
        if problem and not is_final:
            logger.warning("OpenLineage events are pending: %s.", problem)
            failed.touch()
            return
        if problem:
            logger.warning("An OpenLineage event was rejected: %s.", problem)
        file.unlink()


def _post(url: str, key: str | None, line: bytes) -> tuple[str, bool]:
    """Return the error and whether it is permanent; an empty error means success."""
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    # Settings validation allows only http and https.
    request = urllib.request.Request(url, line, headers)  # noqa: S310
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_SECONDS):
            return "", False
    except urllib.error.HTTPError as error:
        is_final = 400 <= error.code < 500 and error.code not in _TRY_AGAIN
        redirect_note = ", a redirect" if 300 <= error.code < 400 else ""
        return f"the endpoint responded {error.code}{redirect_note}", is_final
    except (OSError, ValueError, http.client.HTTPException) as error:
        # The error text can contain the URL.
        return f"the endpoint was not reached ({type(error).__name__})", False


_logger = logging.getLogger("lakehouse.lineage")
NAMESPACE = "lakehouse"
"""Default job namespace if the lakehouse has no name."""


@dataclass(frozen=True)
class OpenLineageEvents(WriteListener):
    """Emits one START and one COMPLETE, FAIL or ABORT event for each write id.

    Errors are logged and do not fail the write. A write of a killed process has no end event.
    """

    settings: Settings
    catalog: Catalog

    @cached_property
    def log(self) -> EventLog:
        """The event file."""
        return _log_of(self.settings)

    @cached_property
    def _maker(self) -> EventMaker:
        names = DatasetNames(self.catalog, self.settings.region)
        return EventMaker(self.settings.name or NAMESPACE, names, self.settings.warehouse)

    def begun(self, write: BegunWrite) -> None:
        """Emit the start of a write."""
        _attempt(lambda: self.log.append(self._maker.start(write)))

    def finished(self, write: BegunWrite, outcome: Outcome) -> None:
        """Emit the outcome of a write."""
        self._end(lambda: self._maker.end(write, outcome))

    def failed(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> None:
        """Emit the failure of a write."""
        self._end(lambda: self._maker.failure(write, error, had_conflict=had_conflict))

    def _end(self, make: Callable[[], Json]) -> None:
        _attempt(lambda: self.log.append(make()))
        send_waiting(self.settings)


def send_waiting(settings: Settings) -> None:
    """Send queued events to the configured endpoint, if any."""
    url, log = settings.openlineage_url, _log_of(settings)
    if url is not None:
        _attempt(lambda: send_events(log, url, settings.openlineage_key, _logger))


def _log_of(settings: Settings) -> EventLog:
    return EventLog(settings.openlineage_file, is_sent=settings.openlineage_url is not None)


def _attempt(emit: Callable[[], None]) -> None:
    """Log errors that must not fail a write, such as a full disk."""
    try:
        emit()
    except Exception as error:
        _logger.warning("An OpenLineage event was not emitted: %s.", type(error).__name__)
