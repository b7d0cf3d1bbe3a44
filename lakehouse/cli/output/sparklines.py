"""Sparklines: one character per time interval."""

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
_NO_VALUE = "·"
"""Not a space, which would allow a line break."""


def sparkline(values: Sequence[float | None], *, lowest: float | None = None) -> str:
    """Return one character per value, scaled from `lowest` or the minimum to the maximum."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low = min(known) if lowest is None else lowest
    high = max(known)

    def block(value: float) -> str:
        if high <= low:
            return BLOCKS[0 if lowest is not None else len(BLOCKS) // 2]
        level = int((value - low) / (high - low) * len(BLOCKS))
        return BLOCKS[min(level, len(BLOCKS) - 1)]

    return "".join(_NO_VALUE if value is None else block(value) for value in values)
