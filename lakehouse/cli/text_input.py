"""Reads text from standard input or a file; errors do not contain the text."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakehouse.errors import UsageError

_STANDARD_INPUT = "Standard input"
_BYTE_ORDER_MARK = "\ufeff"


def read_standard_input(expected: str) -> str:
    """Return standard input; raises UsageError with `expected`, such as `statements`."""
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(f"{_STANDARD_INPUT} is closed; expected {expected} there.")
    with _explained(_STANDARD_INPUT, expected):
        return sys.stdin.read().removeprefix(_BYTE_ORDER_MARK)


def lines_of_standard_input(expected: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each non-blank line of standard input."""
    yield from _lines(read_standard_input(expected))


def lines_of_file(file: Path, expected: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each non-blank line of a UTF-8 file; raises UsageError."""
    with _explained(str(file), expected):
        # Some editors write a byte order mark.
        text = file.read_text(encoding="utf-8-sig")
    yield from _lines(text)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


@contextmanager
def _explained(name: str, expected: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        # The error text contains the byte, which can be part of a value.
        raise UsageError(
            f"{name} is not {error.encoding}; expected {expected} in it."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read ({error.strerror}); expected {expected} in it."
        ) from error
