"""Compressed streams and archives, unpacked to be read as what is in them."""

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BytesIO
from typing import BinaryIO, Literal, Protocol, cast

import pyarrow as pa

from lakehouse.privacy.verifier.formats.arrow_file import left_open

_CHUNK_BYTES = 1024 * 1024
_LZ4_BLOCK = struct.Struct("<8sBiiI")
_LZ4_METHOD = 0x20
"""Of a block that is compressed; another is kept as it is."""
_METHOD = 0xF0


class Readable(Protocol):
    """A stream of decompressed bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""


def stream_chunks(file: BinaryIO, kind: str) -> Iterator[bytes]:
    """Yield what a compressed stream holds, in all its parts.

    :raises Exception: whatever the codec raises where the stream is damaged or ends early.
    """
    if kind == "lz4 block":
        yield from _lz4_blocks(file)
        return
    stream = _STREAMS[kind](file)
    while chunk := stream.read(_CHUNK_BYTES):
        yield chunk


def is_stream(kind: str) -> bool:
    """Whether a kind of file is a compressed stream."""
    return kind in _STREAMS or kind == "lz4 block"


def decompressed(content: bytes, kind: str) -> bytes:
    """Return what compressed bytes hold.

    :raises ValueError: where the codec is not known.
    """
    if not is_stream(kind):
        raise ValueError(f"compressed by {kind}, which is not known")
    return b"".join(stream_chunks(BytesIO(content), kind))


def members(file: BinaryIO, kind: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the name and the content of each file in an archive: of `zip` and `tar`.

    :raises Exception: whatever its reader raises where it is damaged.
    """
    yield from _zip_members(file) if kind == "zip" else _tar_members(file)


def _zip_members(file: BinaryIO) -> Iterator[tuple[str, Iterator[bytes]]]:
    with zipfile.ZipFile(file) as archive:
        for item in archive.infolist():
            if not item.is_dir():
                with archive.open(item) as member:
                    yield item.filename, _chunks(member)


def _tar_members(file: BinaryIO) -> Iterator[tuple[str, Iterator[bytes]]]:
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for entry in archive:
            member = archive.extractfile(entry)
            if member is not None:
                with closing(member):
                    yield entry.name, _chunks(member)


def _chunks(stream: Readable) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK_BYTES):
        yield chunk


class _ZlibStream:
    """One stream of zlib, as a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decompressor = zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""
        decompressor = self._decompressor
        while not decompressor.eof:
            pending = decompressor.unconsumed_tail or self._file.read(_CHUNK_BYTES)
            if not pending:
                raise EOFError("the stream ends early")
            if content := decompressor.decompress(pending, size):
                return content
        return b""


def _by_arrow(codec: Literal["lz4", "zstd"]) -> Callable[[BinaryIO], Readable]:
    def open_stream(file: BinaryIO) -> Readable:
        return cast(
            Readable,
            pa.CompressedInputStream(left_open(file), codec),
        )

    return open_stream


_STREAMS: dict[str, Callable[[BinaryIO], Readable]] = {
    "gzip": lambda file: cast(Readable, gzip.GzipFile(fileobj=file, mode="rb")),
    "bzip2": lambda file: cast(Readable, bz2.BZ2File(file)),
    "xz": lambda file: cast(Readable, lzma.LZMAFile(file)),  # noqa: SIM115
    "zstd": _by_arrow("zstd"),
    "lz4": _by_arrow("lz4"),
    "zlib": _ZlibStream,
}


def _lz4_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks of lz4-java, by which Spark compresses what it spills."""
    while header := file.read(_LZ4_BLOCK.size):
        magic, token, packed_bytes, content_bytes, _ = _LZ4_BLOCK.unpack(header)
        if magic != b"LZ4Block":
            raise ValueError("a block does not begin as one of lz4-java")
        packed = file.read(packed_bytes)
        if len(packed) != packed_bytes:
            raise EOFError("the last block ends early")
        if token & _METHOD == _LZ4_METHOD and content_bytes:
            yield pa.decompress(packed, content_bytes, "lz4_raw", asbytes=True)
        elif packed:
            yield packed
