"""`lakehouse` as a process of its own, and what runs below it."""

import secrets
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import URLError

from lakehouse_tests.processes import Child

_FIRST_PORT, _PORTS = 20_000, 12_000
LAKEHOUSE = str(Path(sys.executable).with_name("lakehouse"))


def free_port() -> int:
    """Return a port that nobody listens on. It is below those that the system gives to the
    other ends of connections: one of these, or the next, may be in use once it is listened on.
    """
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


def java_below(pid: int) -> list[int]:
    return [
        found for found in processes_below(pid) if "java" in command_of(found).split(" ")[0]
    ]


def processes_below(pid: int) -> list[int]:
    lines = subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    parents = {int(child): int(parent) for child, parent in map(str.split, lines)}
    below = [pid]
    for above in below:
        below += [child for child, parent in parents.items() if parent == above]
    return below[1:]


def command_of(pid: int) -> str:
    return subprocess.run(
        ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout


def is_alive(pid: int) -> bool:
    state = subprocess.run(
        ["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")
