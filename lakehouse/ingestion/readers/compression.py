"""Compression of delivered files, by the endings of their names."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, TypeVar

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.byte_source import Readable, Writable

T = TypeVar("T")

_GZIP_LEVEL = 6


def unpacked(delivered: Readable, file_format: str) -> Readable:
    codec = {".gz": "gzip", ".zst": "zstd"}.get(PurePosixPath(file_format).suffix)
    return _Decompressed(delivered, codec) if codec else delivered


class DamagedCompression(Exception):
    """A compressed file is damaged, truncated or not of its format."""


class _Decompressed:
    """The content of a compressed file. Arrow detects truncated files, unlike zstandard."""

    def __init__(self, delivered: Readable, codec: Any) -> None:
        self._delivered = delivered
        self._codec = codec
        self._stream: Any = None

    def read(self, size: int = -1, /) -> bytes:
        import pyarrow as pa

        try:
            if self._stream is None:
                file = pa.PythonFile(_Unclosed(self._delivered), "r")  # type: ignore[arg-type]
                self._stream = pa.CompressedInputStream(file, self._codec)
            block: bytes = self._stream.read(size if size >= 0 else None)
            return block
        except OSError as error:
            if error.errno is not None:
                raise
        raise DamagedCompression(self._codec)


@dataclass
class _Unclosed:
    """A file object for Arrow that does not close the underlying file."""

    content: Readable
    closed: bool = False

    def read(self, size: int, /) -> bytes:
        return self.content.read(size)

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def packed(target: BinaryIO, file_format: str) -> Iterator[Writable]:
    """Yield a compressing writer without timestamp and name, so equal input gives equal bytes."""
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


def reject_damaged(read: Callable[[], T]) -> T:
    """Call a function and reject the file if its compression is damaged."""
    try:
        return read()
    except DamagedCompression as error:
        codec = str(error)
    raise FileRejected(
        f"not a {codec} file",
        found=f"one that is cut off, or bytes that {codec} cannot decompress",
        expected=f"a complete {codec} file, as its name says",
        next_step="Compress it and put it back.",
    )
