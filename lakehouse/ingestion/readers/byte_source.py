"""The bytes of a delivered file on their way to the parser: counted, hashed, unpacked, and
marked at their end.
"""

import gzip
import hashlib
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from typing import IO, Any, BinaryIO, Protocol, TypeVar

from lakehouse.errors import FileRejected

T = TypeVar("T")
HEAD_BYTES = 1 << 20
_BLOCKS_AHEAD = 4
"""Blocks of a file that are read and not yet given on: one is parsed, one awaits its last row,
and as many again.
"""
_LOOK_SECONDS = 0.5
_GZIP_LEVEL = 6
_SPOOLED_BYTES = 8 << 20


class Readable(Protocol):
    """Whatever gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, and none at the end."""


class Writable(Protocol):
    """Whatever takes bytes."""

    def write(self, block: bytes, /) -> int:
        """Take some bytes."""


class HashedBytes:
    """The bytes of a file as delivered, hashed as they are read; `progress` is called with how many
    came.
    """

    def __init__(self, raw: BinaryIO, progress: Callable[[int], None]) -> None:
        self._raw = raw
        self._progress = progress
        self._hash = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        block = self._raw.read(size)
        self._hash.update(block)
        self._progress(len(block))
        return block

    def sha256(self) -> str:
        """Return the hash of all bytes, in hex; what nobody asked for is read now."""
        while self.read(HEAD_BYTES):
            pass
        return self._hash.hexdigest()


class ReadAhead:
    """How far the parser may read ahead of the rows that were read of it: Arrow by itself
    reads 36 blocks.

    `begin` and `end` are called by the thread that reads the rows, `wait` by the one of Arrow's
    that reads.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._blocks = 0
        self._is_wanted = True
        self._is_over = False

    def begin(self) -> None:
        """Rows are asked for, and nobody goes on without them."""
        with self._changed:
            self._is_wanted = True

    def end(self) -> None:
        """Rows of one block came."""
        with self._changed:
            self._blocks -= 1
            self._is_wanted = False
            self._changed.notify_all()

    def close(self) -> None:
        """No more rows are read."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until another block may be read; False where nobody wants it."""
        with self._changed:
            while self._blocks >= _BLOCKS_AHEAD and not self._is_over:
                # Arrow passes over blocks without a row, and tells nobody: who waits for rows
                # gets another block.
                if not self._changed.wait(_LOOK_SECONDS) and self._is_wanted:
                    self._blocks = _BLOCKS_AHEAD - 1
            self._blocks += 1
            return not self._is_over


class ParsedBytes:
    """The text that the parser reads: a head that was read before, the rest, and a tail of
    our own.

    :param look: called with each block before the parser has it; it may raise.
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
        """Return exactly `size` bytes, fewer only at the end: Arrow takes what it gets for a
        block.
        """
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
        """Do nothing: whoever opened the file closes it."""


def unpacked(delivered: Readable, file_format: str) -> Readable:
    """Return the content of a file, decompressed where its format says that it is
    compressed.
    """
    if file_format.endswith(".zst"):
        return _ZstdContent(delivered)
    if not file_format.endswith(".gz"):
        return delivered
    # Of a source gzip asks for no more than `Readable` has; its stubs want a whole file.
    return gzip.GzipFile(fileobj=delivered, mode="rb")  # type: ignore[call-overload,no-any-return]


class DamagedZstd(EOFError):
    """A `.zst` is cut off or damaged."""


class _ZstdContent:
    """The content of a file that is compressed by zstd.

    Arrow decompresses it: zstandard takes a file that is cut off for a complete one.
    """

    def __init__(self, delivered: Readable) -> None:
        self._delivered = delivered
        self._stream: Any = None

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes.

        :raises DamagedZstd: the file is damaged or cut off, or no zstd.
        """
        import pyarrow as pa

        try:
            if self._stream is None:
                file = pa.PythonFile(_Unclosed(self._delivered), "r")  # type: ignore[arg-type]
                self._stream = pa.CompressedInputStream(file, "zstd")
            block: bytes = self._stream.read(size if size >= 0 else None)
            return block
        except OSError as error:
            if error.errno is not None:
                raise
        raise DamagedZstd


@dataclass
class _Unclosed:
    """What is read of a file; whoever opened the file closes it."""

    content: Readable
    closed: bool = False

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        return self.content.read(size)

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def packed(target: BinaryIO, file_format: str) -> Iterator[Writable]:
    """Give what takes the content of a file, and compresses it where its format says so.

    No moment and no name is in a compressed file, so that the same blocks give the same bytes.
    """
    if file_format.endswith(".zst"):
        from zstandard import ZstdCompressor

        with ZstdCompressor().stream_writer(target, closefd=False) as zstd:
            yield zstd
        return
    if not file_format.endswith(".gz"):
        yield target
        return
    with gzip.GzipFile("", "wb", _GZIP_LEVEL, target, mtime=0) as compressed:
        yield compressed


def refuse_damaged(read: Callable[[], T]) -> T:
    """Call what reads a file's bytes.

    :raises FileRejected: for a `.gz` or `.zst` that is none, or is damaged or cut off; other
        errors are the system's, and pass.
    """
    try:
        return read()
    except DamagedZstd:
        kind, found = "zstd", "one that is cut off, or bytes that zstd cannot decompress"
    except EOFError:
        kind, found = "gzip", "one that is cut off"
    except (gzip.BadGzipFile, zlib.error):
        kind, found = "gzip", "bytes that gzip cannot decompress"
    raise FileRejected(
        f"not a {kind} file",
        found=found,
        expected=f"a complete {kind} file, as its name says",
        next_step="Compress it and put it back.",
    )


def read_head(text: Readable) -> bytes:
    """Read the first megabyte, or all where there is less."""
    head = b""
    while len(head) < HEAD_BYTES:
        found = text.read(HEAD_BYTES - len(head))
        if not found:
            break
        head += found
    return head


def spooled(content: Readable) -> IO[bytes]:
    """Return a temporary copy of a file, to be read from any position; on disk, in `TMPDIR`,
    where it is larger than 8 MB.
    """
    copy = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115
    while block := content.read(HEAD_BYTES):
        copy.write(block)
    copy.seek(0)
    return copy
