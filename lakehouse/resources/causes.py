"""What an error that Dagster kept came of."""

from collections.abc import Iterator
from typing import Any


def causes(error: Any) -> Iterator[Any]:
    """Yield an error, what it came of, and so on; what came first is last. Nothing where no error was kept."""
    while error is not None:
        yield error
        error = error.cause
