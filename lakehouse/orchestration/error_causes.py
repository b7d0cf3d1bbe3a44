"""What an error that Dagster kept came of."""

from collections.abc import Iterator
from typing import Any

OURS = "lakehouse.errors."
"""What the message of an error begins with, as Dagster keeps it, where the lakehouse raised
it.
"""


def causes(error: Any) -> Iterator[Any]:
    """Yield an error, what it came of, and so on; what came first is last. Nothing where no
    error was kept.
    """
    while error is not None:
        yield error
        error = error.cause


def known_cause(error: Any) -> Any:
    """Return the innermost cause that the lakehouse said in its own words, or else the
    innermost of all.
    """
    chain = list(causes(error))
    ours = [cause for cause in chain if cause.message.startswith(OURS)]
    return (ours or chain)[-1]
