"""Suggestions of similar names for "not found" errors."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LISTED = 20


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, such as `silver.fruits` for `silver.fruit` or
    `fruits`; None if none is similar.

    A name without a layer is compared with all names without their layers.
    """
    by_lower_name = {other.lower(): other for other in known}
    matches = get_close_matches(name.lower(), by_lower_name, n=1)
    if not matches and "." not in name:
        last = {other.rpartition(".")[2]: other for other in by_lower_name}
        matches = [last[match] for match in get_close_matches(name.lower(), last, n=1)]
    return by_lower_name[matches[0]] if matches else None


def meant_name(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: a similar name, or the known ones."""
    names = sorted(known)
    similar = near_name(name, names)
    if similar:
        return f"did you mean {similar}?"
    if not names:
        return "there is none yet."
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"expected one of {', '.join(names[:_MOST_LISTED])}{more}."
