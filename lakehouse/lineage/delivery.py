"""Events on their way to an HTTP address: in order, each until it was received, and never so
that a write waits for it for long.

What waits are the lines of the file of events after the one that was sent last. So it is bounded
as the file is: what leaves the file before the address answers again is not sent.
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
"""How long one call sends at most."""
_MOST_EVENTS = 1000
"""How many are looked at in one call; more than are sent in that time."""
PAUSE_SECONDS = 60.0
"""How long an address that did not answer is left in peace."""
_TIMEOUT_SECONDS = 2.0
_TRY_AGAIN = (401, 403, 404, 408, 425, 429)
"""Answers that are not about the event: one that gets another below 500 would get it each time,
and is passed over.
"""


class _FollowsNothing(urllib.request.HTTPRedirectHandler):
    """Leaves an address that leads elsewhere as the answer: what is followed is a GET without the
    event, which a page to sign in answers too, and it takes the key along.
    """

    def redirect_request(self, *_: object) -> None:
        """Ask nobody else."""


_OPENER = urllib.request.build_opener(_FollowsNothing)


@dataclass(frozen=True)
class Sent:
    """How far the events were sent: in which file, known by its first line, and to which
    byte.
    """

    file: str = ""
    offset: int = 0
    failed_at: float = 0.0
    """When the address did not answer, in seconds since 1970; 0 where it did."""
    passed_over: int = 0
    """How many events the address refused for good."""


@dataclass(frozen=True)
class Delivery:
    """Sends the events of a file to an address.

    Neither the address nor the key is ever shown: each may be a secret.
    """

    log: EventLog
    url: str
    key: str | None
    logger: logging.Logger

    @property
    def _state(self) -> Path:
        return self.log.folder / "sent.json"

    def send_waiting(self, seconds: float = SECONDS) -> int:
        """Send what waits, for so long at most, and return how many events were received.

        Nothing is sent while another process sends, nor within a minute after the address did
        not answer.
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
                # Where none was sent yet, this one is the first of those that wait.
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
        """Return what was wrong, and whether it would be again; nothing where the event was
        received.
        """
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        # The settings let nothing but http and https through.
        request = urllib.request.Request(self.url, line, headers)  # noqa: S310
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_SECONDS):
                return "", False
        except urllib.error.HTTPError as error:
            is_final = 400 <= error.code < 500 and error.code not in _TRY_AGAIN
            elsewhere = ", and leads elsewhere" if 300 <= error.code < 400 else ""
            return f"the address answered {error.code}{elsewhere}", is_final
        except (OSError, ValueError, http.client.HTTPException) as error:
            # Its text may hold the address, and that a secret.
            return f"the address was not reached ({type(error).__name__})", False

    def _sent(self) -> Sent:
        if not self._state.is_file():
            return Sent()
        try:
            sent: Sent = read_json(self._state, Sent)
        except LakehouseError:
            # Whoever receives events knows one that comes twice by its run.
            return Sent()
        return sent

    def _keep(self, sent: Sent) -> None:
        write_json(self._state, sent, Sent)


def _waiting(log: EventLog, sent: Sent) -> list[tuple[bytes, Sent]]:
    """Return the events after those that were sent, each with where sending stands after it; of
    both files where the earlier one was not sent to its end.

    :raises LakehouseError: when another process holds the file for seconds.
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
    """Return the files that may have events which were not sent. Where the file of the last one
    that was is gone, all that are left came after it; where none was sent, those of the earlier
    file were told before the address was.
    """
    is_in_newest = not sent.file or sent.file == _name(log.path)
    return (log.path,) if is_in_newest else (log.earlier, log.path)


def _lines_after(path: Path, offset: int) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as file:
            file.seek(offset)
            yield from file


def _name(path: Path) -> str:
    """Return what a file is known by, also after it was moved; nothing where it has no line."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        first = file.readline()
    return hashlib.sha256(first).hexdigest()[:16] if first.endswith(b"\n") else ""


def _is_event(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        # Half a line, of a process that was killed.
        return False
