"""Append lines to a file atomically, even on a full disk."""

import logging
import mmap
import os
from pathlib import Path

_TAIL_BYTES = 1 << 20
_LOG = logging.getLogger(__name__)


def append_line(path: Path, line: bytes, *, unless: bytes = b"") -> None:
    """Append a line with its newline, atomically; the caller holds a lock. An incomplete last
    line of a killed process is removed first. Nothing is added if the last MiB contains
    `unless`.
    """
    with path.open("ab+", buffering=0) as file:
        size = end = file.seek(0, os.SEEK_END)
        if size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                end = content.rfind(b"\n") + 1
                if unless and content.rfind(unless, max(0, end - _TAIL_BYTES), end) >= 0:
                    return
        if end < size:
            file.truncate(end)
            _LOG.warning("%s: removed an incomplete last line, %d bytes.", path, size - end)
        left = line + b"\n"
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:
            file.truncate(end)
            raise
