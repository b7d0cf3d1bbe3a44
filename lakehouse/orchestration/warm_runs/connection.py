"""What the launcher and the server of runs say to each other: one object of JSON a line, on a
socket of this machine.

The launcher asks for a run. Its process, which is there by then, says who it is, and waits. It
begins once it is told to, and ends where the connection is closed instead: whoever gives up on
it can launch the run in another way, and no run is executed twice.
"""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

GO = {"go": True}
_LONGEST_LINE_BYTES = 1_000_000


def connect(address: str, seconds: float) -> socket.socket:
    """Return a connection to whoever listens at a path.

    :param seconds: how long anything may take on it.
    :raises OSError: where nobody does.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def send(connection: socket.socket, said: Mapping[str, Any]) -> bool:
    """Say something; whether the other side was there to hear it."""
    with suppress(OSError):
        connection.sendall(json.dumps(said).encode() + b"\n")
        return True
    return False


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return what the other side says next; None where it is gone, or takes too long."""
    line = bytearray()
    while not line.endswith(b"\n"):
        try:
            part = connection.recv(65_536)
        except OSError:
            return None
        line += part
        if not part or len(line) > _LONGEST_LINE_BYTES:
            return None
    said: dict[str, Any] = json.loads(line)
    return said
