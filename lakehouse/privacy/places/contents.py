"""Contents of a file or a cell without the values in them, whatever they are: text, JSON,
compressed text, pickled objects.
"""

import gzip
import pickletools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from lakehouse.privacy.places.json_values import JsonScrubber, read_structure
from lakehouse.privacy.places.overwriting import overwritten, patches
from lakehouse.privacy.places.packed_text import unpacked
from lakehouse.privacy.places.value_finder import ValueFinder

GZIP = b"\x1f\x8b"
_ZLIB = b"\x78"
PICKLE = b"\x80"
_TEXT_SIGNS = frozenset(b"\a\b\t\n\v\f\r\x1b")


@dataclass(frozen=True)
class Scrubbed:
    """Some contents without values, and what was counted."""

    content: bytes
    erased: int = 0
    shared: int = 0
    kept_names: int = 0
    is_read: bool = True
    """Whether it was of a kind that can be read; else values may stand in it unseen."""


def scrub_content(finder: ValueFinder, content: bytes) -> Scrubbed:
    """Return contents of any kind without the values."""
    if content.startswith(GZIP):
        return _compressed(finder, content, gzip.decompress, gzip.compress)
    if content.startswith(PICKLE):
        return scrub_pickle(finder, content)
    if is_text(content):
        return scrub_text(finder, content)
    if content.startswith(_ZLIB):
        return _compressed(finder, content, zlib.decompress, zlib.compress)
    return Scrubbed(content, is_read=False)


def scrub_text(finder: ValueFinder, content: bytes) -> Scrubbed:
    """Return a text without the values; JSON stays JSON."""
    if not finder.may_hold(content):
        return Scrubbed(content)
    text = content.decode("utf-8", "surrogateescape")
    if read_structure(text) is None and unpacked(text) is None:
        result = overwritten(finder, content)
        return Scrubbed(result.content, result.erased, result.shared)
    scrubber = JsonScrubber(finder)
    scrubbed = scrubber.text(text)
    changed = scrubbed.encode("utf-8", "surrogateescape") if scrubber.erased else content
    return Scrubbed(changed, scrubber.erased, scrubber.shared, scrubber.kept_names)


def scrub_pickle(finder: ValueFinder, content: bytes) -> Scrubbed:
    """Return pickled objects with as many other bytes for each value: the lengths of texts stand
    before them.
    """
    if not is_pickle(content):
        return Scrubbed(content, is_read=False)
    changed = bytearray(content)
    found, shared = patches(finder, content)
    for patch in found:
        changed[patch.start : patch.end] = patch.content
    return Scrubbed(bytes(changed), len(found), len(shared))


def is_pickle(content: bytes) -> bool:
    """Whether these are pickled objects; nothing of them is made."""
    try:
        for _ in pickletools.genops(content):
            pass
    except Exception:
        # Whatever a reader of damaged bytes raises.
        return False
    return True


def is_text(content: bytes) -> bool:
    """Whether these are characters: in UTF-8, in another encoding of a byte each, or in UTF-16."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    half = len(content) // 2
    zeros = content.count(0)
    if zeros:
        # Of text in UTF-16 mostly every second byte is none.
        return zeros > half * 0.4 and 0 in (content[::2].count(0), content[1::2].count(0))
    control = sum(content.count(sign) for sign in range(32) if sign not in _TEXT_SIGNS)
    return control == 0


def _compressed(
    finder: ValueFinder,
    content: bytes,
    decompress: Callable[[bytes], bytes],
    compress: Callable[[bytes], bytes],
) -> Scrubbed:
    try:
        inner = decompress(content)
    except (OSError, EOFError, zlib.error):
        return Scrubbed(content, is_read=False)
    scrubbed = scrub_content(finder, inner)
    again = compress(scrubbed.content) if scrubbed.erased else content
    return replace(scrubbed, content=again)
