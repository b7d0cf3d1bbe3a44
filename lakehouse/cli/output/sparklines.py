"""Sparklines: one character per time interval."""

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_-=+*%@#"
"""For encodings without the block characters."""
_NOTHING = {BLOCKS: "·", ASCII: "."}
"""Character for an interval without a value; a space would allow a line break."""


def marks_for(encoding: str | None) -> str:
    """Return the characters that an encoding supports, lowest first."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def sparkline(
    values: Sequence[float | None], marks: str, *, lowest: float | None = None
) -> str:
    """Return one character per value, scaled from minimum to maximum; a dot without a value.

    :param lowest: replaces the minimum of the scale.
    """
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low = min(known) if lowest is None else lowest
    high = max(known)

    def mark(value: float) -> str:
        if high <= low:
            return marks[0 if lowest is not None else len(marks) // 2]
        return marks[min(int((value - low) / (high - low) * len(marks)), len(marks) - 1)]

    nothing = _NOTHING.get(marks, " ")
    return "".join(nothing if value is None else mark(value) for value in values)
