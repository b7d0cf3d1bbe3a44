"""How long to wait before something that failed is tried again."""

_FIRST_SECONDS, _LONGEST_SECONDS = 5, 300
_DOUBLINGS = 10
"""After which the longest is long reached, however often something failed."""


def pause_seconds(failures: int) -> int:
    """Return the pause after failures in a row: 5 seconds, doubled each time, up to 5 minutes."""
    return min(_LONGEST_SECONDS, _FIRST_SECONDS * (1 << min(failures - 1, _DOUBLINGS)))
