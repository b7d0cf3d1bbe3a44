"""Text that Dagster keeps packed: compressed, and that in base64, as the cursors of its automation
are.
"""

import re
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass

_PACKED = re.compile(r"(0?)(e[AFJN][A-Za-z0-9+/]{10,}={0,2})")
"""A version, and what begins as bytes do that zlib has compressed."""
_ANY_PACKED = re.compile(rb"e[AFJN][A-Za-z0-9+/]{10}")


@dataclass(frozen=True)
class PackedText:
    """A text, and what stood before it when it was packed."""

    version: str
    text: str

    def packed(self) -> str:
        """Pack it again."""
        compressed = zlib.compress(self.text.encode("utf-8", "surrogateescape"))
        return self.version + b64encode(compressed).decode()


def may_have_packed(content: bytes) -> bool:
    """Whether something in some bytes may be packed."""
    return bool(_ANY_PACKED.search(content))


def unpacked(text: str) -> PackedText | None:
    """Unpack a text; None where it is not packed."""
    match = _PACKED.fullmatch(text)
    if not match:
        return None
    try:
        content = zlib.decompress(b64decode(match[2]))
    except (ValueError, zlib.error):
        return None
    return PackedText(match[1], content.decode("utf-8", "surrogateescape"))
