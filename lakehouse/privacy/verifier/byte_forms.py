"""The bytes that a value may stand as in a file.

Letters of ASCII are searched in either case, so that forms that differ by it alone are one.
"""

import base64
import html
import json
import unicodedata
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

TRUNCATED_LENGTH = 16
"""Characters that Iceberg keeps of a string's bounds, unless a table says otherwise
(`write.metadata.metrics.default=truncate(16)`).
"""
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_JSON_LEVELS = 3
"""JSON in a string of JSON in a string of JSON: as Dagster keeps what a run reported."""


@dataclass(frozen=True)
class ByteForm:
    """One way in which a value is written."""

    encoding: str
    content: bytes
    is_exact: bool = False
    """Whether the case of its letters counts, as in base64."""


def byte_forms(value: str) -> list[ByteForm]:
    """Return the forms of a value; where two encodings give the same bytes, the plainer one."""
    forms: dict[bytes, ByteForm] = {}
    for spelling in spellings(value):
        for form in _forms(spelling):
            same_as = form.content if form.is_exact else form.content.lower()
            forms.setdefault(same_as, form)
    return list(forms.values())


def spellings(value: str) -> list[str]:
    """Return a value as it is, in upper and lower case, composed and decomposed; the first is
    as given, without spaces around it.
    """
    stripped = value.strip()
    found = []
    for text in (stripped, stripped.lower(), stripped.upper()):
        composed = unicodedata.normalize("NFC", text)
        found += [text, composed, unicodedata.normalize("NFD", text)]
    return list(dict.fromkeys(found))


def truncated_bounds(value: str) -> list[str]:
    """Return what Iceberg keeps of a value as a lower and as an upper bound; nothing where it
    keeps the whole.

    The upper bound has the last character that can be incremented, incremented.
    """
    if len(value) <= TRUNCATED_LENGTH:
        return []
    lower = value[:TRUNCATED_LENGTH]
    upper = _incremented(lower)
    return [lower, upper] if upper else [lower]


def _incremented(text: str) -> str | None:
    for position in reversed(range(len(text))):
        following = ord(text[position]) + 1
        if following == _SURROGATES[0]:
            following = _SURROGATES[1] + 1
        if following <= _LAST_CODE_POINT:
            return text[:position] + chr(following)
    return None


def _forms(text: str) -> Iterator[ByteForm]:
    content = text.encode("utf-8", "surrogatepass")
    yield ByteForm("UTF-8", content)
    yield from _other_code_pages(text)
    for escaped in _json_escaped(text):
        yield ByteForm("JSON-escaped", escaped.encode("utf-8", "surrogatepass"))
    for escaped in _quoted(text):
        yield ByteForm("quoted", escaped.encode("utf-8", "surrogatepass"))
    for escaped in (html.escape(text), html.escape(text, quote=False)):
        yield ByteForm("HTML-escaped", escaped.encode("utf-8", "surrogatepass"))
    for escaped in _url_escaped(content):
        yield ByteForm("URL-escaped", escaped.encode())
    yield ByteForm("hex", content.hex().encode())
    for encoded in base64_middles(content):
        yield ByteForm("base64", encoded, is_exact=True)
    yield from _uuid_forms(text)


def _other_code_pages(text: str) -> Iterator[ByteForm]:
    little = text.encode("utf-16-le", "surrogatepass")
    if text.isascii():
        # Without the outer zero, what both byte orders have in common.
        yield ByteForm("UTF-16", little[:-1])
        return
    yield ByteForm("UTF-16", little)
    yield ByteForm("UTF-16", text.encode("utf-16-be", "surrogatepass"))
    western = text.encode("cp1252", "ignore")
    if western.decode("cp1252") == text:
        yield ByteForm("Latin-1", western)


def _json_escaped(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        escaped = text
        for _ in range(_JSON_LEVELS):
            escaped = json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped
            yield escaped.replace("/", "\\/")


def _quoted(text: str) -> Iterator[str]:
    yield text.replace("'", "''")
    yield text.replace('"', '""')
    yield text.replace("'", "\\'")
    yield repr(text)[1:-1]


def _url_escaped(content: bytes) -> Iterator[str]:
    for safe in ("", "/", "@", "/@:"):
        yield quote(content, safe=safe)
        yield quote_plus(content, safe=safe)


def base64_middles(content: bytes) -> list[bytes]:
    """Return the characters of base64 that stand for a value alone, for each of the three
    places in a group of three bytes where it may begin, in both alphabets.
    """
    middles = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content)
        # A character has six bits: the first and the last may hold bits of what is beside.
        first = -(-before * 8 // 6)
        last = (before + len(content)) * 8 // 6
        middle = encoded[first:last]
        middles += [middle, middle.translate(bytes.maketrans(b"+/", b"-_"))]
    return list(dict.fromkeys(middles))


def _uuid_forms(text: str) -> Iterator[ByteForm]:
    try:
        identifier = uuid.UUID(text)
    except ValueError:
        return
    yield ByteForm("UUID", identifier.bytes, is_exact=True)
    yield ByteForm("UUID", identifier.hex.encode())
    yield ByteForm("UUID", str(identifier).encode())
