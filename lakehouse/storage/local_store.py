"""A local folder as an object store."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import ELOOP, EXDEV
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lakehouse.errors import UsageError
from lakehouse.storage.object_store import PLAIN_TEXT, ObjectStore, PassedOver, StoredObject
from lakehouse.storage.unfinished_files import is_finished, is_open_for_writing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRIVATE = 0o600
_TEMPORARY_DIGITS = 32


def _walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk a folder; a missing one is empty, and unreadable folders below it are skipped."""

    def stop(error: OSError) -> None:
        is_below = error.filename is not None and Path(error.filename) != folder
        is_skipped = isinstance(error, PermissionError) and is_below
        if not isinstance(error, FileNotFoundError) and not is_skipped:
            raise error

    for name, folders, files in os.walk(folder, onerror=stop):
        # The files of a folder that is readable but not executable are named and not accessible.
        if (parent := Path(name)) == folder or os.access(parent, os.X_OK):
            yield parent, folders, files


_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


def _kind(path: Path) -> str | None:
    """Describe an entry that is not a readable file or folder; None otherwise."""
    try:
        form = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None
    is_folder = form == stat.S_IFDIR
    if form in _KINDS or os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
        return _KINDS.get(form)
    return f"a {'folder' if is_folder else 'file'} that this user cannot read"


def _is_occupied(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir(follow_symlinks=False):
        return True
    try:
        with os.scandir(entry.path) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
    except OSError:
        # Listing the folder later reports the error.
        return True


@dataclass(frozen=True)
class LocalObjectStore(ObjectStore):
    """A local folder as an object store; keys have sub-folders, links are skipped."""

    root: Path
    settle_seconds: float = 0.5
    poll_seconds: float = 0.25

    @property
    def object_errors(self) -> tuple[type[Exception], ...]:
        return (OSError,)

    def objects(self, prefix: str) -> list[StoredObject]:
        return self._listed(prefix, is_finished)

    def unfinished(self, prefix: str) -> list[StoredObject]:
        return self._listed(prefix, lambda key: not is_finished(key))

    def _listed(self, prefix: str, is_meant: Callable[[str], bool]) -> list[StoredObject]:
        # Unreadable entries are skipped, so that they do not block others.
        folder = self._path(prefix)
        items = []
        for parent, _, names in _walk(folder):
            for path in map(parent.joinpath, names):
                key = path.relative_to(folder).as_posix()
                item = self.stat(f"{prefix}{key}") if is_meant(key) else None
                if item and os.access(path, os.R_OK):
                    items.append(item)
        return sorted(items, key=lambda item: (item.modified_at, item.key))

    def passed_over(self, prefix: str) -> list[PassedOver]:
        folder = self._path(prefix)
        entries = []
        for parent, folders, files in _walk(folder):
            for path in map(parent.joinpath, (*folders, *files)):
                key, kind = path.relative_to(folder).as_posix(), _kind(path)
                if kind and is_finished(key):
                    entries.append(PassedOver(f"{prefix}{key}", kind))
        return sorted(entries, key=lambda entry: entry.key)

    def is_being_written(self, key: str) -> bool | None:
        return is_open_for_writing(self._path(key))

    def occupied(self, prefix: str) -> set[str]:
        # Other entries are included too, such as links and unreadable folders.
        folder = self._path(prefix)
        try:
            with os.scandir(folder) as entries:
                return {entry.name for entry in entries if _is_occupied(entry)}
        except FileNotFoundError:
            return set()

    def missing(self, prefix: str) -> str | None:
        return None if self._path(prefix).is_dir() else str(self._path(prefix))

    def stat(self, key: str) -> StoredObject | None:
        path = self._path(key)
        if path.is_symlink() or not path.is_file():
            return None
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        # Includes ctime: a copy that preserves the source's time can leave mtime and size
        # unchanged.
        version = f"{status.st_ino}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_size}"
        modified_at = _EPOCH + timedelta(microseconds=status.st_mtime_ns // 1000)
        return StoredObject(key, modified_at, status.st_size, version)

    def open(self, key: str) -> BinaryIO:
        """Open a file for reading, unbuffered since it is read in large blocks.

        Links and pipes that replaced the file are not opened; opening a pipe would block.
        """
        path = self._path(key)
        try:
            descriptor = os.open(
                path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError as error:
            raise (
                FileNotFoundError(f"{path} is a link") if error.errno == ELOOP else error
            ) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError(f"{path} is no file")
        return os.fdopen(descriptor, "rb", buffering=0)

    def move(self, seen: StoredObject, key: str) -> bool:
        source, target = self._path(seen.key), self._path(key)
        if target.exists():
            raise FileExistsError(f"{target} exists already")
        if self.stat(seen.key) != seen:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != EXDEV:
                raise
            return self._move_across_disks(seen, key)
        return self._make_private(target)

    def _make_private(self, target: Path) -> bool:
        """Make a moved file private; if it belongs to another user, replace it with a copy."""
        try:
            target.chmod(_PRIVATE)
        except PermissionError:
            self.put(target, target.relative_to(self.root).as_posix())
        return True

    def _move_across_disks(self, seen: StoredObject, key: str) -> bool:
        self.put(self._path(seen.key), key)
        # If the file was removed in the meantime, the copy may be the only one.
        if self.remove(seen) or not self._path(seen.key).exists():
            return True
        self._path(key).unlink()
        return False

    def remove(self, seen: StoredObject) -> bool:
        if self.stat(seen.key) != seen:
            return False
        try:
            self._path(seen.key).unlink()
        except FileNotFoundError:
            return False
        return True

    def put(self, source: Path, key: str) -> None:
        self._replace(key, lambda unfinished: shutil.copyfile(source, unfinished))

    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        if self.stat(seen.key) != seen:
            return None
        target = self._path(seen.key)
        unfinished = self._unfinished(target)
        shutil.copyfile(source, unfinished)
        modified_at_ns = target.stat().st_mtime_ns
        os.utime(unfinished, ns=(modified_at_ns, modified_at_ns))
        if self.stat(seen.key) != seen:
            unfinished.unlink()
            return None
        unfinished.replace(target)
        return self.stat(seen.key)

    def remains(self, prefix: str) -> list[StoredObject]:
        return self._listed(prefix, lambda _: True)

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:  # noqa: ARG002
        self._replace(key, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))

    def _replace(self, key: str, write: Callable[[Path], object]) -> None:
        target = self._path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._unfinished(target)
        write(unfinished)
        unfinished.replace(target)

    def _unfinished(self, target: Path) -> Path:
        # A hash is unique even for long and similar names, and constant, so that a file left by
        # a killed process is replaced.
        digest = sha256(os.fsencode(target.name)).hexdigest()[:_TEMPORARY_DIGITS]
        unfinished = target.with_name(f".{digest}.tmp")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=_PRIVATE)
        return unfinished

    def remove_folder(self, prefix: str) -> None:
        folder = self._path(prefix)
        if folder.is_dir():
            shutil.rmtree(folder)

    def uri(self, key: str) -> str:
        return str(self._path(key))

    def spark_uri(self, key: str) -> str:
        """Return the path as a URI, without escapes, which Hadoop does not decode."""
        return f"file://{self._path(key)}"

    def _path(self, key: str) -> Path:
        parts = PurePosixPath(key).parts
        if not parts or key.startswith("/") or ".." in parts:
            raise UsageError(
                f"{key!r} is not a key; expected a path below {self.root}, without '..'."
            )
        return self.root / key
