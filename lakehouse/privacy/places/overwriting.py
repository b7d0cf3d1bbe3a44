"""What is written over a value: `[erased]` where a text may become shorter or longer, and the same
number of bytes in a file that others write at its end.
"""

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass

from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.privacy.places.value_finder import Span, ValueFinder

_FILLER = b"*"
_AROUND = 16
"""Bytes on each side of a number that tell whether it is one of JSON."""
_QUANTUM = 4
"""Characters of base64 that stand for three bytes."""


@dataclass(frozen=True)
class Overwritten:
    """Some bytes without the values that stood in them."""

    content: bytes
    erased: int = 0
    shared: int = 0


@dataclass(frozen=True)
class Patch:
    """What is to be written over some bytes."""

    start: int
    end: int
    content: bytes


def overwritten(finder: ValueFinder, content: bytes) -> Overwritten:
    """Return some bytes with `[erased]` for each value; in base64 and hex as many bytes as
    before, so that they can be decoded.
    """
    found = finder.find(content)
    parts, at = [], 0
    for span in found.spans:
        patch = _patch(content, span, keeps_length=False)
        parts += [content[at : patch.start], patch.content]
        at = patch.end
    return Overwritten(b"".join([*parts, content[at:]]), len(found.spans), len(found.shared))


def patches(finder: ValueFinder, content: bytes) -> tuple[list[Patch], list[int]]:
    """Return what is to be written over some bytes, whose number stays; and where values begin
    that are left, since others have them.
    """
    found = finder.find(content)
    patched = [_patch(content, span, keeps_length=True) for span in found.spans]
    return patched, [start for start, _ in found.shared]


def _patch(content: bytes, span: Span, *, keeps_length: bool) -> Patch:
    encoding, length = span.form.encoding, span.end - span.start
    if encoding in ("base64", "urlsafe base64"):
        return _in_base64(content, span)
    if encoding == "raw":
        return Patch(span.start, span.end, _FILLER * length)
    if encoding == "hex":
        return Patch(span.start, span.end, _FILLER.hex().encode() * (length // 2))
    if encoding == "bytes" and _is_number_of_json(content, span):
        return Patch(span.start, span.end, b"0".ljust(length if keeps_length else 1))
    codec = encoding if encoding.startswith("utf-16") else "ascii"
    width = len(ERASED.encode(codec)) // len(ERASED)
    text = _filled(length // width) if keeps_length else ERASED
    return Patch(span.start, span.end, text.encode(codec))


def _filled(length: int) -> str:
    fits = length >= len(ERASED)
    return (ERASED if fits else "").ljust(length, _FILLER.decode())


def _is_number_of_json(content: bytes, span: Span) -> bool:
    """Whether a number stands where JSON takes no text without quotes."""
    if not content[span.start : span.end].isdigit():
        return False
    before = content[max(0, span.start - _AROUND) : span.start].rstrip()
    after = content[span.end : span.end + _AROUND].lstrip()
    is_value = before.endswith(b'":')
    is_item = before.endswith((b"[", b",")) and after.startswith((b",", b"]"))
    return is_value or is_item


def _in_base64(content: bytes, span: Span) -> Patch:
    """Return the encoded text around a value with other bytes in the place of the value's.

    The first and the last character of it may stand for bytes of something else, too.
    """
    form = span.form
    altchars = b"-_" if form.encoding == "urlsafe base64" else b"+/"
    start = span.start - (8 * form.lead_bytes + 5) // 6
    size = -(-(span.end - start) // _QUANTUM) * _QUANTUM
    text = re.match(rb"[A-Za-z0-9+/_-]*", content[max(0, start) : start + size])
    if start < 0 or text is None or len(text[0]) % _QUANTUM == 1:
        # It only looks like one: what decodes to the value goes.
        return Patch(span.start, span.end, b"A" * (span.end - span.start))
    padding = b"=" * (-len(text[0]) % _QUANTUM)
    decoded = bytearray(b64decode(text[0] + padding, altchars))
    value = slice(form.lead_bytes, form.lead_bytes + form.value_bytes)
    decoded[value] = _FILLER * len(decoded[value])
    again = b64encode(bytes(decoded), altchars)
    return Patch(start, start + len(text[0]), again[: len(text[0])])
