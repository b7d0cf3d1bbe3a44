"""Causes of an error that Dagster recorded."""

from collections.abc import Iterator
from typing import Any

OWN_ERROR = "lakehouse.errors."
"""Prefix of the recorded message of an error that this package raised."""


def causes(error: Any) -> Iterator[Any]:
    """Yield an error and its causes, the root cause last; nothing if it was not recorded."""
    while error is not None:
        yield error
        error = error.cause


def known_cause(error: Any) -> Any:
    """Return the innermost cause that this package raised, or else the root cause."""
    chain = list(causes(error))
    own = [cause for cause in chain if cause.message.startswith(OWN_ERROR)]
    return (own or chain)[-1]
