"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def keep_private() -> None:
    """Have this process, and those that it starts, make files and folders that nobody else may
    read.
    """
    os.umask(0o077)


def replace_text(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Write a file in one step, so that no other process sees half of it; an equal one is left
    alone.
    """
    replace_bytes(path, text.encode(), mode=mode)


def replace_bytes(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file as `replace_text` does."""
    if path.is_file() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with _written(path, content, mode) as part:
        part.replace(path)


def create_bytes(path: Path, content: bytes, *, mode: int = 0o600) -> bool:
    """Let a file appear in one step; False where there is one already, or where files cannot be
    linked.
    """
    try:
        with _written(path, content, mode) as part:
            path.hardlink_to(part)
    except OSError:
        return False
    return True


@contextmanager
def _written(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    """Write beside a path what is to be there; what was not moved away is removed again."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.chmod(mode)
        yield part
    finally:
        part.unlink(missing_ok=True)
