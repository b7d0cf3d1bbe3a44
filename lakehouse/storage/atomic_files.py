"""Atomic file writes and appends."""

import logging
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


def keep_private() -> None:
    """Make files of this process and its children private to the user."""
    os.umask(0o077)


def replace_text(path: Path, text: str, *, mode: int = 0o600) -> None:
    replace_bytes(path, text.encode(), mode=mode)


def replace_bytes(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file atomically; a file with equal content is not touched."""
    if path.is_file() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with _written(path, content, mode) as part:
        part.replace(path)


def create_bytes(path: Path, content: bytes, *, mode: int = 0o600) -> bool:
    """Create a file atomically. Return False if it exists."""
    with _written(path, content, mode) as part:
        try:
            path.hardlink_to(part)
        except OSError:
            if path.exists():
                return False
            # Some disks have no hard links.
            part.replace(path)
    return True


@contextmanager
def _written(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.chmod(mode)
        yield part
    finally:
        part.unlink(missing_ok=True)
