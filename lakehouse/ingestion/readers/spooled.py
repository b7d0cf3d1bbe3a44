"""A delivered file that is read from any position: a copy on disk, hashed as it is made."""

import tempfile
from typing import IO

from lakehouse.ingestion.readers.byte_source import HEAD_BYTES, Readable

_IN_MEMORY_BYTES = 8 << 20


def spooled(content: Readable) -> IO[bytes]:
    """Return a temporary copy of a file; larger than 8 MB it is on disk, in `TMPDIR`."""
    copy = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
    while block := content.read(HEAD_BYTES):
        copy.write(block)
    copy.seek(0)
    return copy
