"""Where every file is found and opened: a folder here, a bucket in `bucket_root`."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

_DATABASE_ENDINGS = (".db", ".sqlite", ".sqlite3")
_BESIDE_A_DATABASE = ("", "-wal", "-shm", "-journal")

LINK = "a link, not followed"
"""What is said of a link; where it leads out of what is searched, nothing is proved."""


@dataclass(frozen=True)
class RootEntry:
    """What stands below a root."""

    key: str
    """Path below the root, with `/` between its parts."""
    size_bytes: int = 0
    version: str = ""
    """Of a bucket that keeps noncurrent versions, which one."""
    problem: str = ""
    """Why it has no bytes that can be read, such as 'a link'; empty where it is a file."""
    is_gap: bool = False
    """Whether bytes may stand there that could not be read."""

    @property
    def title(self) -> str:
        """Return how it is named in a report."""
        return f"{self.key} (version {self.version})" if self.version else self.key

    def beside(self, name: str) -> "RootEntry":
        """Return another file of the same folder."""
        return RootEntry(str(PurePosixPath(self.key).with_name(name)))


class Root(Protocol):
    """A place that is searched as a whole."""

    @property
    def name(self) -> str:
        """What a report calls it."""

    def address(self, title: str) -> str:
        """Return what tells an entry from one of another root, by its title."""

    def entries(self) -> Iterator[RootEntry]:
        """Yield everything that stands there, by key, hidden or not."""

    def open(self, entry: RootEntry) -> BinaryIO:
        """Open an entry to read it from any position.

        :raises FileNotFoundError: when it is gone.
        :raises OSError: when it cannot be read.
        """

    def open_beside(self, entry: RootEntry, name: str) -> BinaryIO | None:
        """Open another file of an entry's folder; None where there is none."""


@dataclass(frozen=True)
class FolderRoot:
    """A folder with all that is below it; links are told, and not followed."""

    folder: Path
    below: str = ""
    """A folder in it outside of which nothing is searched; keys begin with it."""

    @property
    def name(self) -> str:
        """Return the path of the folder that is searched."""
        return str(self._searched)

    def address(self, title: str) -> str:
        """Return the path of a file."""
        return str(self.folder / title)

    @property
    def _searched(self) -> Path:
        return self.folder / self.below

    def entries(self) -> Iterator[RootEntry]:
        """Yield all files below the folder, and what cannot be read as one.

        :raises FileNotFoundError: when there is no such folder.
        """
        if not self._searched.is_dir():
            raise FileNotFoundError(f"{self._searched} is no folder")
        unread: list[RootEntry] = []

        def remember(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                key = Path(error.filename).relative_to(self.folder).as_posix()
                unread.append(RootEntry(key, problem=_why(error), is_gap=True))

        for parent, folders, files in os.walk(self._searched, onerror=remember):
            folders.sort()
            for name in sorted([*files, *_links(parent, folders)]):
                entry = self._entry(Path(parent, name))
                if entry:
                    yield entry
        yield from unread

    def open(self, entry: RootEntry) -> BinaryIO:
        """Open a file; a database by a copy, see `_copy_by_another_process`."""
        path = self.folder / entry.key
        if is_database_file(entry.key):
            return _copy_by_another_process(path)
        # What took its place is not waited for, nor followed.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(path, flags), "rb", buffering=0)

    def open_beside(self, entry: RootEntry, name: str) -> BinaryIO | None:
        """Open another file of the folder, such as a database's log; None where there is
        none.
        """
        beside = entry.beside(name)
        try:
            return self.open(beside)
        except FileNotFoundError:
            return None

    def _entry(self, path: Path) -> RootEntry | None:
        key = path.relative_to(self.folder).as_posix()
        try:
            status = path.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            return RootEntry(key, problem=_why(error), is_gap=True)
        if stat.S_ISREG(status.st_mode):
            return RootEntry(key, status.st_size)
        if stat.S_ISLNK(status.st_mode):
            return RootEntry(key, problem=LINK, is_gap=leads_out(path, self._searched))
        return RootEntry(key, problem="a pipe, socket or device, which keeps no bytes")


def leads_out(link: Path, folder: Path) -> bool:
    """Whether a link ends elsewhere than in a folder."""
    # `resolve` has no end of a link that leads to itself.
    return not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(folder))


def is_database_file(key: str) -> bool:
    """Whether a file is SQLite's, by its name."""
    return key.endswith(
        tuple(f"{name}{beside}" for name in _DATABASE_ENDINGS for beside in _BESIDE_A_DATABASE)
    )


def _copy_by_another_process(path: Path) -> BinaryIO:
    """Return an unnamed copy of a file that another process made.

    A process that closes a file loses its locks on it, and this one may have the database open
    (https://sqlite.org/howtocorrupt.html).
    """
    copy = tempfile.TemporaryFile()  # noqa: SIM115
    cat = shutil.which("cat")
    if cat is None:
        copy.close()
        raise OSError(f"There is no `cat`, by which {path.name} is copied")
    done = subprocess.run(
        [cat, "--", str(path)], stdout=copy, stderr=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        copy.close()
        path.lstat()
        raise PermissionError(f"{path.name} could not be read")
    copy.seek(0)
    return copy


def _links(parent: str, folders: list[str]) -> list[str]:
    return [name for name in folders if Path(parent, name).is_symlink()]


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
