"""How values of people are shown: as a keyed hash, so that equal ones can be seen to be equal,
or as their shape.
"""

import hashlib
import hmac
import unicodedata

_SIGNS = {
    "@": "@",
    ".": "dot",
    ",": "comma",
    "-": "hyphen",
    "_": "underscore",
    "/": "slash",
    ":": "colon",
    "+": "plus",
}
_KINDS = {
    "L": "letters",
    "M": "letters",
    "N": "digits",
    "Z": "spaces",
    "C": "control characters",
}
_OTHER = "other signs"
_ORDER = ("letters", "digits", "spaces", *_SIGNS.values(), _OTHER, "control characters")


def mask(key: bytes, value: object) -> str | None:
    """Return `masked:` and twelve hex digits of the value's keyed hash; None stays None."""
    if value is None:
        return None
    return "masked:" + hmac.new(key, str(value).encode(), hashlib.sha256).hexdigest()[:12]


def shape(value: object) -> str:
    """Return the length of a value as text and the kinds of its characters: `17 characters:
    letters, @, dot`.

    The kinds are in an order of their own, so that it tells no more than which there are.
    """
    text = str(value)
    if not text:
        return "empty text"
    kinds = {_kind(character) for character in text}
    named = ", ".join(kind for kind in _ORDER if kind in kinds)
    return f"{len(text):,} character{'' if len(text) == 1 else 's'}: {named}"


def _kind(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    return _KINDS.get(unicodedata.category(character)[0], _OTHER)
