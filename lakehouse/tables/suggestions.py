"""The name that somebody probably meant, for errors that say that there is none of that
name.
"""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LISTED = 20


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a name, `silver.fruits` for `silver.fruit` or
    `fruits`; None if none is.

    A name without its layer is compared with the names of all layers without theirs.
    """
    whole = {other.lower(): other for other in known}
    matches = get_close_matches(name.lower(), whole, n=1)
    if not matches and "." not in name:
        last = {other.rpartition(".")[2]: other for other in whole}
        matches = [last[match] for match in get_close_matches(name.lower(), last, n=1)]
    return whole[matches[0]] if matches else None


def meant_name(name: str, known: Iterable[str]) -> str:
    """Return what an error says after the name that is not there: the near one, or those that
    there are.
    """
    names = sorted(known)
    similar = near_name(name, names)
    if similar:
        return f"did you mean {similar}?"
    if not names:
        return "there is none yet."
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"expected one of {', '.join(names[:_MOST_LISTED])}{more}."
