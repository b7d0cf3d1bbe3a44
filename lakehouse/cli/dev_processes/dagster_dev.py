"""Dagster's services as a child that tells what happened, and not each look of a sensor."""

import signal
import subprocess
import sys
from itertools import chain
from threading import Thread
from typing import IO

from lakehouse.cli.dev_processes.log_filter import LogFilter, without_colours

_LAST_WORDS_SECONDS = 2.0


def main() -> None:
    """Run Dagster's services with the arguments of this process, hand signals on, and exit as
    they did.
    """
    children: list[subprocess.Popen[str]] = []

    def hand_on(number: int, _: object) -> None:
        for child in children:
            child.send_signal(number)

    # Before it starts, so that a signal that this process was started to ignore is not ignored
    # by the child too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, hand_on)
    children.append(_start(sys.argv[1:]))
    (child,) = children
    assert child.stdout is not None
    reader = Thread(target=_tell, args=[child.stdout], daemon=True)
    reader.start()
    code = child.wait()
    # What it started may hold the pipe for longer.
    reader.join(_LAST_WORDS_SECONDS)
    sys.exit(code if code >= 0 else 128 - code)


def _start(arguments: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            sys.executable,
            "-u",
            "-m",
            "lakehouse.cli.dev_processes.dagster_services",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )


def _tell(lines: IO[str]) -> None:
    is_coloured, log = _takes_colours(), LogFilter()
    for told in chain(map(log.read, lines), iter(log.end, [])):
        sys.stderr.writelines(told if is_coloured else map(without_colours, told))
        sys.stderr.flush()


def _takes_colours() -> bool:
    """Whether a person reads the log on a terminal, and has not said otherwise by NO_COLOR."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal and not console.no_color


if __name__ == "__main__":
    main()
