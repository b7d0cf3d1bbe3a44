"""What goes on, on standard error: a spinner for a person, one plain line for a log, nothing
where it is quick.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Timer
from typing import TextIO

QUICK_SECONDS = 2.0


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads what is printed there; where it was closed, Python has no stream
    at all.
    """
    return stream is not None and stream.isatty()


class Progress:
    """Shows what goes on for as long as a `with` block takes; in a log, each line is printed
    once.
    """

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, what: str) -> AbstractContextManager[object]:
        """Show what goes on until the block ends."""
        if not is_terminal(sys.stderr):
            return self._line(what)
        from rich.console import Console

        return Console(stderr=True).status(what)

    @contextmanager
    def _line(self, what: str) -> Iterator[None]:
        later = Timer(QUICK_SECONDS, self._print, [what])
        later.daemon = True
        later.start()
        try:
            yield
        finally:
            later.cancel()

    def _print(self, what: str) -> None:
        if what not in self._printed:
            self._printed.add(what)
            print(f"{what} …", file=sys.stderr, flush=True)  # noqa: T201
