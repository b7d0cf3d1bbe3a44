"""The bytes of a delivered file on their way to the parser: counted, hashed, unpacked, and marked at their end."""

import gzip
import hashlib
from collections.abc import Callable
from typing import BinaryIO, Protocol

HEAD_BYTES = 1 << 20


class Readable(Protocol):
    """Whatever gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, and none at the end."""


class HashedBytes:
    """The bytes of a file as delivered, hashed as they are read; `progress` is told how many came."""

    def __init__(self, raw: BinaryIO, progress: Callable[[int], None]) -> None:
        self._raw = raw
        self._progress = progress
        self._hash = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        found = self._raw.read(size)
        self._hash.update(found)
        self._progress(len(found))
        return found

    def sha256(self) -> str:
        """Return the hash of all bytes, in hex; what nobody asked for is read now."""
        while self.read(HEAD_BYTES):
            pass
        return self._hash.hexdigest()


class ParsedBytes:
    """The text that the parser reads: a head that was looked at before, the rest, and a tail of our own."""

    closed = False

    def __init__(self, head: bytes, rest: Readable, tail: bytes) -> None:
        self._head = head
        self._rest = rest
        self._tail = tail

    def read(self, size: int, /) -> bytes:
        """Return exactly `size` bytes, fewer only at the end: Arrow takes what it gets for a block."""
        parts = []
        while size and (part := self._next(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _next(self, size: int) -> bytes:
        if self._head:
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        found = self._rest.read(size)
        if found:
            return found
        taken, self._tail = self._tail[:size], self._tail[size:]
        return taken

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


def unpacked(delivered: Readable, file: str) -> Readable:
    """Return the text of a file, decompressed where its name says that it is compressed."""
    return gzip.GzipFile(fileobj=delivered, mode="rb") if file.lower().endswith(".gz") else delivered  # type: ignore[call-overload]


def read_head(text: Readable) -> bytes:
    """Read the first megabyte, or all where there is less."""
    head = b""
    while len(head) < HEAD_BYTES:
        found = text.read(HEAD_BYTES - len(head))
        if not found:
            break
        head += found
    return head
