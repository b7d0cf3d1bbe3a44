"""One process at a time: the operating system's lock on a file, which goes with the process that
holds it.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lakehouse.errors import LakehouseError

BRIEF_SECONDS = 60.0
"""How long is waited for who changes a small file."""


@contextmanager
def file_lock(file: Path, wait_seconds: float, busy: LakehouseError) -> Iterator[None]:
    """Hold the lock of a file, whose folder is made where there is none.

    :param busy: what is raised where another process holds it for longer than `wait_seconds`.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # Another thread than the one that took it may let it go.
    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=wait_seconds)
    except Timeout:
        raise busy from None
    try:
        yield
    finally:
        lock.release()


def is_held(file: Path) -> bool:
    """Whether anybody holds the lock of a file.

    It is taken for a moment to see that: who takes it without waiting may meet this.
    """
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
    """Hold the lock of who changes a small file, or some of them.

    :raises LakehouseError: when another process goes on to.
    """
    return file_lock(file, BRIEF_SECONDS, busy_file(file))


def busy_file(file: Path) -> LakehouseError:
    """Return the error of a small file that another process goes on to change."""
    return LakehouseError(
        f"{file} was being changed by another process for {BRIEF_SECONDS:.0f} s; expected it"
        " free by then.",
        next_step="Look which process holds it, and try again.",
    )
