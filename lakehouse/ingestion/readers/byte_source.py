"""Byte streams from a delivered file to its parser: hash, limit, append a tail."""

import hashlib
import tempfile
from collections.abc import Callable
from threading import Condition, Event
from typing import IO, BinaryIO, Protocol

HEAD_BYTES = 1 << 20
_BLOCKS_AHEAD = 4
"""Blocks that are read but not yet returned: one is parsed, one waits for its last row, and two
more.
"""
_LOOK_SECONDS = 0.5
_SPOOLED_BYTES = 8 << 20


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


class Writable(Protocol):
    """A target for bytes."""

    def write(self, block: bytes, /) -> int:
        """Write some bytes."""


class HashedBytes:
    """The bytes of a delivered file, hashed while reading until `stop` is set."""

    def __init__(self, raw: BinaryIO, stop: Event | None = None) -> None:
        self._raw = raw
        self._stop = stop
        self._hash = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        if self._stop and self._stop.is_set():
            raise InterruptedError("Another file of the delivery could not be read.")
        block = self._raw.read(size)
        self._hash.update(block)
        return block

    def sha256(self) -> str:
        """Return the SHA-256 of the entire file in hex, after reading any remaining bytes."""
        while self.read(HEAD_BYTES):
            pass
        return self._hash.hexdigest()


class ReadAhead:
    """Limits how far Arrow reads ahead of the returned rows; its default is 36 blocks.

    The consumer thread calls `begin` and `end`; Arrow's reader thread calls `wait`.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._blocks = 0
        self._is_waiting = True
        self._is_over = False

    def begin(self) -> None:
        """The consumer requests rows."""
        with self._changed:
            self._is_waiting = True

    def end(self) -> None:
        """The consumer received the rows of one block."""
        with self._changed:
            self._blocks -= 1
            self._is_waiting = False
            self._changed.notify_all()

    def close(self) -> None:
        """The consumer stops reading."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until another block can be read; return False if the consumer stopped."""
        with self._changed:
            while self._blocks >= _BLOCKS_AHEAD and not self._is_over:
                # Arrow skips blocks without rows silently, so a waiting consumer gets another
                # block.
                if not self._changed.wait(_LOOK_SECONDS) and self._is_waiting:
                    self._blocks = _BLOCKS_AHEAD - 1
            self._blocks += 1
            return not self._is_over


class ParsedBytes:
    """The text for the parser: a head that was already read, the rest of the file, and an added
    tail.

    :param look: called with each block before it is parsed; it may raise.
    """

    closed = False

    def __init__(
        self,
        head: bytes,
        rest: Readable,
        tail: bytes,
        ahead: ReadAhead,
        look: Callable[[bytes], None],
    ) -> None:
        self._head = head
        self._rest = rest
        self._tail = tail
        self._ahead = ahead
        self._look = look

    def read(self, size: int, /) -> bytes:
        """Return exactly `size` bytes, or fewer at the end: Arrow treats each read as a block."""
        if not self._ahead.wait():
            return b""
        parts = []
        while size and (part := self._next(size)):
            parts.append(part)
            size -= len(part)
        block = b"".join(parts)
        if block:
            self._look(block)
        return block

    def _next(self, size: int) -> bytes:
        if self._head:
            block, self._head = self._head[:size], self._head[size:]
            return block
        found = self._rest.read(size)
        if found:
            return found
        taken, self._tail = self._tail[:size], self._tail[size:]
        return taken

    def close(self) -> None:
        """Do nothing; the caller that opened the file closes it."""


def read_head(text: Readable) -> bytes:
    """Read the first megabyte, or the entire file if it is smaller."""
    head = b""
    while len(head) < HEAD_BYTES:
        found = text.read(HEAD_BYTES - len(head))
        if not found:
            break
        head += found
    return head


def spooled(content: Readable) -> IO[bytes]:
    """Return a seekable temporary copy of a file; above 8 MB it is stored on disk in `TMPDIR`."""
    copy = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115
    while block := content.read(HEAD_BYTES):
        copy.write(block)
    copy.seek(0)
    return copy
