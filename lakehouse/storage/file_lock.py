"""File locks between processes; the operating system releases them when the process ends."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lakehouse.errors import LakehouseError

BRIEF_SECONDS = 60.0
"""How long to wait for another process that changes a small file."""


@contextmanager
def file_lock(file: Path, wait_seconds: float, busy: LakehouseError) -> Iterator[None]:
    """Hold the lock of a file, or raise `busy` if another process holds it for too long."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Another thread may release it.
    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=wait_seconds)
    except Timeout:
        raise busy from None
    try:
        yield
    finally:
        lock.release()


def is_file_locked(file: Path) -> bool:
    """Return whether the lock of a file is held, by acquiring it briefly."""
    if not file.is_file():
        return False
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def brief_lock(file: Path) -> AbstractContextManager[None]:
    """Hold the lock for changes of small files."""
    return file_lock(file, BRIEF_SECONDS, busy_file(file))


def busy_file(file: Path) -> LakehouseError:
    """Return the error for a small file that another process is changing for too long."""
    return LakehouseError(
        f"{file} was locked by another process for {BRIEF_SECONDS:.0f} s; expected it to be"
        " released by then.",
        next_step="Find the process that holds its lock, and try again.",
    )
