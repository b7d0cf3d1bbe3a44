"""`lakehouse` as a process of its own, and what runs below it."""

import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from urllib.error import URLError

from lakehouse_tests.processes import Child

LAKEHOUSE = str(Path(sys.executable).with_name("lakehouse"))


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return probe.getsockname()[1]


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
    below = [child for child, parent in parents.items() if parent == pid]
    return [*below, *(deeper for child in below for deeper in processes_below(child))]


def command_of(pid: int) -> str:
    return subprocess.run(
        ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout


def is_alive(pid: int) -> bool:
    state = subprocess.run(
        ["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")
