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
from pathlib import Path

from lakehouse.errors import LakehouseError, TableBusy
from lakehouse.lineage.event_log import EventLog
from lakehouse.storage.file_lock import file_lock
from lakehouse.storage.json_files import read_json, write_json

_SECONDS = 3.0
_MOST_EVENTS = 1000
"""More than can be sent in one call."""
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
class Position:
    """The file, identified by its first line, the byte offset after the last sent event, and the
    time of the last failed request in seconds since 1970, or 0.
    """

    file: str = ""
    offset: int = 0
    failed_at: float = 0.0


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
    file, until = log.folder / "sent.json", time.monotonic() + _SECONDS
    position = _read_position(file)
    if time.time() - position.failed_at < PAUSE_SECONDS:
        return
    for line, after in _pending(log, position):
        if time.monotonic() >= until:
            return
        problem, is_final = _post(url, key, line)
        if problem and not is_final:
            logger.warning("OpenLineage events are pending: %s.", problem)
            # If nothing was sent yet, the queue starts in this file.
            pending_in = position.file or after.file
            failed = replace(position, file=pending_in, failed_at=time.time())
            write_json(file, failed, Position)
            return
        if problem:
            logger.warning("An OpenLineage event was rejected: %s.", problem)
        position = after
        write_json(file, position, Position)


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


def _read_position(file: Path) -> Position:
    if not file.is_file():
        return Position()
    try:
        position: Position = read_json(file, Position)
    except LakehouseError:
        # Receivers deduplicate events by run id.
        return Position()
    return position


def _pending(log: EventLog, position: Position) -> list[tuple[bytes, Position]]:
    """Return the queued events, each with the position after it.

    Includes the previous file if it was not fully sent. Without a sent event, the previous file
    predates the endpoint.

    :raises LakehouseError: another process locks the file for several seconds.
    """
    pending: list[tuple[bytes, Position]] = []
    with log.locked():
        is_in_newest = position.file in ("", _file_id(log.path))
        for path in (log.path,) if is_in_newest else (log.earlier, log.path):
            name = _file_id(path)
            offset = position.offset if name == position.file else 0
            for line in _lines_after(path, offset):
                offset += len(line)
                if len(pending) < _MOST_EVENTS and _is_event(line):
                    pending.append((line.strip(), Position(name, offset)))
    return pending


def _lines_after(path: Path, offset: int) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as file:
            file.seek(offset)
            yield from file


def _file_id(path: Path) -> str:
    """Return an id that is stable across renames."""
    first = next(_lines_after(path, 0), b"")
    return hashlib.sha256(first).hexdigest()[:16] if first.endswith(b"\n") else ""


def _is_event(line: bytes) -> bool:
    """Return whether a line is complete; a killed process can leave a partial one."""
    try:
        return line.endswith(b"\n") and isinstance(json.loads(line), dict)
    except ValueError:
        return False
