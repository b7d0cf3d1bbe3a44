"""The words of a column's name, whatever it is written like."""

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of `CustomerID`, `customer_id` or `Customer Id`, in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name))
