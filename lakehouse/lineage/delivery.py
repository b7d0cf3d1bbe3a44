"""Delivers events to an HTTP endpoint: in order, at least once, without blocking writes for long.

The queue is the part of the event file after the last delivered line. Events that leave the
size-limited file before the endpoint responds are not delivered.
"""

import hashlib
import http.client
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from lakehouse.errors import LakehouseError, TableBusy
from lakehouse.lineage.event_log import EventLog
from lakehouse.storage.file_lock import file_lock
from lakehouse.storage.json_files import read_json, write_json

SECONDS = 3.0
"""Maximum duration of one delivery call."""
_MOST_EVENTS = 1000
"""Maximum number of events per call; more than can be sent in that time."""
PAUSE_SECONDS = 60.0
"""Delay after an unsuccessful request."""
_TIMEOUT_SECONDS = 2.0
_TRY_AGAIN = (401, 403, 404, 408, 425, 429)
"""Retryable status codes. Other 4xx responses reject the event permanently; it is skipped."""


class _FollowsNothing(urllib.request.HTTPRedirectHandler):
    """Returns redirects as responses.

    A redirected POST would become a GET without the event, which a login page answers with 200,
    and would forward the key.
    """

    def redirect_request(self, *_: object) -> None:
        """Do not follow the redirect."""


_OPENER = urllib.request.build_opener(_FollowsNothing)


@dataclass(frozen=True)
class Sent:
    """Delivery position: the file, identified by its first line, and the byte offset."""

    file: str = ""
    offset: int = 0
    failed_at: float = 0.0
    """Time of the last failed request in seconds since 1970; 0 after a success."""
    passed_over: int = 0
    """Number of events that the endpoint rejected permanently."""


@dataclass(frozen=True)
class Delivery:
    """Sends the events of a file to an endpoint.

    Neither the URL nor the key is logged: both can be secret.
    """

    log: EventLog
    url: str
    key: str | None
    logger: logging.Logger

    @property
    def _state(self) -> Path:
        return self.log.folder / "sent.json"

    def send_waiting(self, seconds: float = SECONDS) -> int:
        """Send queued events for a limited time; return the number of accepted events.

        Does nothing while another process sends, or within a minute after a failure.
        """
        busy = TableBusy("Another process sends.")
        try:
            with file_lock(self.log.folder / "send.lock", 0, busy):
                return self._send(time.monotonic() + seconds)
        except TableBusy:
            return 0

    def _send(self, until: float) -> int:
        sent, received = self._sent(), 0
        if time.time() - sent.failed_at < PAUSE_SECONDS:
            return 0
        for line, after in _waiting(self.log, sent):
            if time.monotonic() >= until:
                break
            problem, is_final = self._post(line)
            if problem and not is_final:
                self.logger.warning("Events of OpenLineage wait: %s.", problem)
                # Without a delivered event, this one is the start of the queue.
                waits_in = sent.file or after.file
                self._keep(replace(sent, file=waits_in, failed_at=time.time()))
                break
            if problem:
                self.logger.warning("An event of OpenLineage was refused: %s.", problem)
            passed_over = sent.passed_over + bool(problem)
            sent = replace(after, failed_at=0.0, passed_over=passed_over)
            received += not problem
            self._keep(sent)
        return received

    def _post(self, line: bytes) -> tuple[str, bool]:
        """Return the error and whether it is permanent; an empty error means success."""
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        # Settings validation allows only http and https.
        request = urllib.request.Request(self.url, line, headers)  # noqa: S310
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_SECONDS):
                return "", False
        except urllib.error.HTTPError as error:
            is_final = 400 <= error.code < 500 and error.code not in _TRY_AGAIN
            redirect_note = ", and leads elsewhere" if 300 <= error.code < 400 else ""
            return f"the address answered {error.code}{redirect_note}", is_final
        except (OSError, ValueError, http.client.HTTPException) as error:
            # The error text can contain the URL, which can be secret.
            return f"the address was not reached ({type(error).__name__})", False

    def _sent(self) -> Sent:
        if not self._state.is_file():
            return Sent()
        try:
            sent: Sent = read_json(self._state, Sent)
        except LakehouseError:
            # Receivers deduplicate events by run id.
            return Sent()
        return sent

    def _keep(self, sent: Sent) -> None:
        write_json(self._state, sent, Sent)


def _waiting(log: EventLog, sent: Sent) -> list[tuple[bytes, Sent]]:
    """Return the queued events, each with the delivery position after it.

    Includes the previous file if it was not fully sent.

    :raises LakehouseError: another process locks the file for several seconds.
    """
    waiting: list[tuple[bytes, Sent]] = []
    with log.locked():
        for path in _unsent_files(log, sent):
            name = _name(path)
            offset = sent.offset if name == sent.file else 0
            for line in islice(_lines_after(path, offset), _MOST_EVENTS - len(waiting)):
                offset += len(line)
                if line.endswith(b"\n") and _is_event(line):
                    waiting.append((line.strip(), replace(sent, file=name, offset=offset)))
    return waiting


def _unsent_files(log: EventLog, sent: Sent) -> tuple[Path, ...]:
    """Return the files that can contain unsent events.

    If the file of the last sent event does not exist any more, all files are newer. If nothing
    was sent, the previous file predates the endpoint.
    """
    is_in_newest = not sent.file or sent.file == _name(log.path)
    return (log.path,) if is_in_newest else (log.earlier, log.path)


def _lines_after(path: Path, offset: int) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as file:
            file.seek(offset)
            yield from file


def _name(path: Path) -> str:
    """Return a file id that is stable across renames; empty without a complete line."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        first = file.readline()
    return hashlib.sha256(first).hexdigest()[:16] if first.endswith(b"\n") else ""


def _is_event(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        # A partial line of a killed process.
        return False
