"""Progress on standard error: a spinner on a terminal, one line in a log, nothing if fast."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Timer
from time import monotonic
from typing import TextIO

QUICK_SECONDS = 2.0
PAUSE_SECONDS = 10.0
"""Minimum interval between log lines."""
Update = Callable[[str], None]
"""Shows details of the progress."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; a closed stream is None."""
    return stream is not None and stream.isatty()


class Progress:
    """Shows progress during a `with` block; a log contains each line once."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, what: str) -> AbstractContextManager[Update]:
        """Show progress until the block ends; the block receives a function for details."""
        return self._spinner(what) if is_terminal(sys.stderr) else self._line(what)

    @contextmanager
    def _spinner(self, what: str) -> Iterator[Update]:
        from rich.console import Console

        with Console(stderr=True).status(what) as status:
            yield lambda detail: status.update(f"{what}: {detail}")

    @contextmanager
    def _line(self, what: str) -> Iterator[Update]:
        later = Timer(QUICK_SECONDS, self._print, [what])
        later.daemon = True
        later.start()
        quiet_until = monotonic() + PAUSE_SECONDS

        def update(detail: str) -> None:
            nonlocal quiet_until
            if monotonic() >= quiet_until:
                quiet_until = monotonic() + PAUSE_SECONDS
                self._print(f"{what}: {detail}")

        try:
            yield update
        finally:
            later.cancel()

    def _print(self, what: str) -> None:
        if what not in self._printed:
            self._printed.add(what)
            print(f"{what} …", file=sys.stderr, flush=True)  # noqa: T201
