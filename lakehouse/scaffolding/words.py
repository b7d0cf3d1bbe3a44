"""The words of a column's name, whatever it is written like."""

import re
import unicodedata

_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of `CustomerID`, `customer_id` or `Customer Id`, in lower case.

    Letters are those without marks: `Straße` and `PRÉNOM` are `strasse` and `prenom`.
    """
    return tuple(word.casefold() for word in _WORD.findall(_unmarked(name)))


def _unmarked(name: str) -> str:
    """Return a name without the marks of its letters, in the case that they have."""
    parts = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return "".join(sign for sign in parts if not unicodedata.combining(sign))
