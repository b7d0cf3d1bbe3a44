"""What the launcher and the server of runs say to each other: one object of JSON a line, on a
socket of Linux that is no file, and of which each side asks who has the other.

The launcher asks for a run. Its process, which is there by then, says who it is, and waits. It
begins once it is told to, and ends where the connection is closed instead: whoever gives up on
it can launch the run in another way, and no run is executed twice.
"""

import hashlib
import json
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

GO = {"go": True}
_LONGEST_LINE_BYTES = 1_000_000
_CREDENTIALS = struct.Struct("3i")
"""A process, its user and its group, as `unix(7)` has it of SO_PEERCRED."""


def address_of(dagster_home: Path) -> str:
    """Return where the server of an instance of Dagster listens, of which there is one."""
    digest = hashlib.sha256(os.fsencode(dagster_home.resolve())).hexdigest()
    return f"\0lakehouse-runs-{os.getuid()}-{digest[:32]}"


def listen(address: str) -> socket.socket:
    """Listen at an address.

    :raises OSError: where somebody does.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen()
    return listener


def connect(address: str, seconds: float) -> socket.socket | None:
    """Return a connection to a process of this user that listens at an address; None where there
    is none.

    :param seconds: how long anything may take on it.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(seconds)
    with suppress(OSError):
        connection.connect(address)
        if is_of_this_user(connection):
            return connection
    connection.close()
    return None


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the other side is a process of the user that this one is of."""
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(said)
    return bool(user == os.getuid())


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
