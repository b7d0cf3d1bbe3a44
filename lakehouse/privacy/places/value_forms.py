"""How a value may stand in a file: as it is, escaped, and encoded."""

import html
import json
import unicodedata
import uuid
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, quote_plus

from lakehouse.privacy.places.wanted_values import is_integer
from lakehouse.tables.escaping import visible

Encoding = Literal["bytes", "raw", "utf-16-le", "utf-16-be", "hex", "base64", "urlsafe base64"]
_QUOTES = ("''", "\\'")
_JSON_LEVELS = 3
"""JSON in a string of JSON in a string of JSON: as Dagster keeps what a run reported."""
_BEGINNING = 16
"""Bytes by which the beginning of a longer value is known, where messages cut it."""
_SAFE = ("", "/", "@", "@:/")


@dataclass(frozen=True)
class Form:
    """The bytes by which a value is found, and how they are to be overwritten."""

    pattern: bytes
    encoding: Encoding
    is_number: bool = False
    """Whether digits beside it would make it another number."""
    lead_bytes: int = 0
    """In base64, how many bytes of something else share its first four characters."""
    value_bytes: int = 0
    """In base64, how many bytes the value has."""
    rest: bytes = b""
    """Of a value that may have been cut, how it goes on."""

    @property
    def is_exact(self) -> bool:
        """Whether the case of its letters counts."""
        return self.encoding in ("raw", "base64", "urlsafe base64")


def forms_of(value: str) -> Iterator[Form]:
    """Yield the forms of a value, some of them equal; letters of ASCII stand for either case,
    but in base64.
    """
    for spelling in _spellings(value):
        yield from _forms(spelling)
    with suppress(ValueError):
        identifier = uuid.UUID(value)
        yield Form(identifier.hex.encode(), "bytes")
        yield Form(identifier.bytes, "raw")


def _spellings(value: str) -> set[str]:
    """Return a value in its own, in small and in capital letters, their marks composed or not."""
    texts = (value, value.lower(), value.upper())
    composed = {unicodedata.normalize("NFC", text) for text in texts}
    return {*texts, *composed, *(unicodedata.normalize("NFD", text) for text in texts)}


def _forms(value: str) -> Iterator[Form]:
    is_number = is_integer(value.removeprefix("-"))
    for text in _texts(value):
        content = _encoded(text)
        yield Form(content, "bytes", is_number)
        if len(value) > _BEGINNING:
            yield Form(content[:_BEGINNING], "bytes", rest=content[_BEGINNING:])
    if not value.isascii():
        yield from _in_one_byte(value)
    yield Form(value.encode("utf-16-le", "surrogatepass"), "utf-16-le", is_number)
    yield Form(value.encode("utf-16-be", "surrogatepass"), "utf-16-be", is_number)
    yield Form(_encoded(value).hex().encode(), "hex")
    yield from _in_base64(value)


def _texts(value: str) -> set[str]:
    """Return the texts that stand for a value: in JSON, in JSON within JSON, in an address, in
    a query, in Python's and our own escapes, in HTML.
    """
    texts = {value, visible(value), html.escape(value), html.escape(value, quote=False)}
    texts |= {repr(value)[1:-1], ascii(value)[1:-1]}
    texts |= {value.replace("'", escaped) for escaped in _QUOTES}
    texts.add(value.replace('"', '""'))
    for is_ascii in (True, False):
        escaped = value
        for _ in range(_JSON_LEVELS):
            escaped = _in_json(escaped, is_ascii=is_ascii)
            texts |= {escaped, escaped.replace("/", "\\/")}
    for safe in _SAFE:
        texts.add(quote(value, safe, errors="surrogatepass"))
        texts.add(quote_plus(value, safe, errors="surrogatepass"))
    if is_integer(value):
        texts.add(f"{int(value):,}")
    return texts


def _in_json(text: str, *, is_ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=is_ascii)[1:-1]


def _in_one_byte(value: str) -> Iterator[Form]:
    for encoding in ("latin-1", "cp1252"):
        encoded = value.encode(encoding, "ignore")
        # One that lost a character would be found in other words.
        if encoded.decode(encoding) == value:
            yield Form(encoded, "bytes")


def _in_base64(value: str) -> Iterator[Form]:
    """Yield what is the same whatever stands before and after the value."""
    content = _encoded(value)
    for lead in range(3):
        first = (8 * lead + 5) // 6
        last = 8 * (lead + len(content)) // 6
        padded, size = bytes(lead) + content, len(content)
        plain, urlsafe = b64encode(padded), urlsafe_b64encode(padded)
        yield Form(plain[first:last], "base64", False, lead, size)
        yield Form(urlsafe[first:last], "urlsafe base64", False, lead, size)


def _encoded(text: str) -> bytes:
    # A lone surrogate, as of a file's name that is no UTF-8, is searched too.
    return text.encode("utf-8", "surrogatepass")
