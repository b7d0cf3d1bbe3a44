"""Numbers over time in a line of characters, one for each span of time."""

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_-=+*%@#"
"""For what cannot show the blocks."""
_NOTHING = {BLOCKS: "·", ASCII: "."}
"""What stands for a span without a value; a space would let a line be wrapped there."""


def marks_for(encoding: str | None) -> str:
    """Return the marks that an encoding has, from the least to the greatest."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def sparkline(
    values: Sequence[float | None], marks: str, *, lowest: float | None = None
) -> str:
    """Return a mark for each value between the least and the greatest; a dot where there is
    none.

    :param lowest: what the lowest mark stands for, in place of the least value.
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
