"""`lakehouse` as a process of its own, and what runs below it."""

import secrets
import socket
import sys
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import URLError

import psutil

from lakehouse.spark.processes import started_at
from lakehouse_tests.processes import Child

_FIRST_PORT, _PORTS = 20_000, 12_000
LAKEHOUSE = str(Path(sys.executable).with_name("lakehouse"))


def free_port() -> int:
    """Return a free port below the ephemeral ports, one of which a client may take."""
    while True:
        port = _FIRST_PORT + secrets.randbelow(_PORTS)
        with suppress(OSError), closing(socket.create_server(("127.0.0.1", port))):
            return port


def answers(port: int, child: Child) -> bool:
    assert child.is_alive, child.said
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=5) as found:
            return found.status == 200
    except (URLError, ConnectionError, TimeoutError):
        return False


def lines_of(child: Child) -> list[str]:
    """Return the output of a command without its progress."""
    return [line for line in child.said.splitlines() if line and not line.endswith(" …")]


def java_below(pid: int) -> list[int]:
    return [
        found for found in processes_below(pid) if "java" in command_of(found).split(" ")[0]
    ]


def processes_below(pid: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def command_of(pid: int) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(psutil.Process(pid).cmdline())
    return ""


def is_alive(pid: int) -> bool:
    return started_at(pid) is not None
