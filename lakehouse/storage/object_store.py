"""Where delivered files stand: objects under keys, in a folder now and in a bucket by the same
calls.

    inbox/<feed>/…              what waits to be ingested
    archive/<feed>/<date>/…     what bronze has
    rejected/<feed>/…           what is not what its feed declares, each with a `.reason.json`
    privacy/rewritten/<feed>/…  which of them were rewritten without some rows

Keys are relative to the home, or to the bucket, and have `/` between their parts.
"""

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import ELOOP, EXDEV
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from lakehouse.errors import UsageError
from lakehouse.storage.open_files import is_open_for_writing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNFINISHED = (
    ".tmp",
    ".temp",
    ".part",
    ".partial",
    ".crdownload",
    ".download",
    ".filepart",
    ".swp",
    "~",
)
PLAIN_TEXT = "text/plain; charset=utf-8"
_PRIVATE = 0o600
_TEMPORARY_DIGITS = 32
_MARKERS = ("_SUCCESS", "_temporary")


@dataclass(frozen=True)
class StoredObject:
    """An object as it was seen: whatever changes it changes its `version`.

    `modified_at` is in UTC and whole microseconds, as tables keep it, so that order means the
    same in both.
    """

    key: str
    modified_at: datetime
    size_bytes: int
    version: str
    """A folder's inode, times and size; an S3 object's ETag."""


@dataclass(frozen=True)
class PassedOver:
    """What stands among the files and is none, so that nobody takes it."""

    key: str
    kind: str
    """What it is, such as 'a link'."""


class ObjectStore(Protocol):
    """What ingestion needs of a folder or a bucket."""

    @property
    def settle_seconds(self) -> float:
        """How long an object must have stood unchanged before it counts as complete; 0 where
        objects appear whole.
        """

    @property
    def poll_seconds(self) -> float:
        """How long to wait between two looks for something new: a look costs time, or money."""

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What is raised where one object is refused, and others need not be."""

    def objects(self, prefix: str) -> list[StoredObject]:
        """Return the finished objects below a prefix that ends in `/`, by (modified time,
        key).
        """

    def unfinished(self, prefix: str) -> list[StoredObject]:
        """Return the objects below a prefix that are hidden, half-written or markers, by
        (modified time, key).
        """

    def passed_over(self, prefix: str) -> list[PassedOver]:
        """Return what stands below a prefix and is no object, by key: the links and pipes of a
        folder.
        """

    def is_being_written(self, key: str) -> bool | None:
        """Whether somebody is writing the object; None where that cannot be told, and False where
        objects appear whole.
        """

    def occupied(self, prefix: str) -> set[str]:
        """Return the names of the folders directly below a prefix that hold anything: one look at
        many that are empty.
        """

    def missing(self, prefix: str) -> str | None:
        """Return where objects of a prefix would stand, where that is not there; None where it
        is.
        """

    def stat(self, key: str) -> StoredObject | None:
        """Return the object as it is now; None where there is none."""

    def exists(self, key: str) -> bool:
        """Whether there is an object."""

    def open(self, key: str) -> BinaryIO:
        """Open an object to read its bytes from the start.

        :raises FileNotFoundError: when it is gone.
        """

    def move(self, seen: StoredObject, key: str) -> bool:
        """Give an object another key; False where it is no longer as it was seen, and stays.

        Where it was overwritten at that very moment, a bucket has what it was before under the
        other key all the same.

        :raises FileExistsError: when the key is taken.
        """

    def remove(self, seen: StoredObject) -> bool:
        """Remove an object; False, and nothing happened, where it is no longer as it was
        seen.
        """

    def put(self, source: Path, key: str) -> None:
        """Copy a local file to a key, where it appears whole, in the place of what was
        there.
        """

    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        """Give an object the content of a local file, in one step, and return it as it is then;
        None, and nothing happened, where it is no longer as it was seen.

        What it held is gone, also from a bucket that keeps old versions. A folder keeps the
        time of the file.
        """

    def old_versions(self, prefix: str) -> list[StoredObject]:
        """Return what objects below a prefix held before, by key: of a bucket that keeps old
        versions. Those of an object that was removed are among them.
        """

    def open_old(self, old: StoredObject) -> BinaryIO:
        """Open an old version to read its bytes from the start.

        :raises FileNotFoundError: when it is gone.
        """

    def remove_old(self, old: StoredObject) -> None:
        """Remove an old version for good."""

    def remains(self, prefix: str) -> list[StoredObject]:
        """Return whatever is kept below a prefix: objects, also those that are hidden, and what a
        bucket keeps of such that were removed or never appeared.
        """

    def discard_uploads(self, prefix: str) -> list[str]:
        """Discard the parts of objects below a prefix that never appeared, and return their
        keys: a bucket keeps what a killed process had uploaded of a large one.
        """

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:
        """Write UTF-8 text, in the place of what was there.

        :param content_type: what a bucket says of it to who asks for it by HTTP.
        """

    def remove_folder(self, prefix: str) -> None:
        """Remove whatever is below a prefix that ends in `/`, also what is hidden or half-written;
        a bucket keeps no old version of it.
        """

    def uri(self, key: str) -> str:
        """Return where the object is, for people."""

    def spark_uri(self, key: str) -> str:
        """Return where Spark reads and writes it, by the file systems of Hadoop."""


def is_finished(key: str) -> bool:
    """Whether a key is a delivery, and not a hidden, half-written or marker object, or below a
    folder that is one.
    """
    parts = PurePosixPath(key).parts
    return (
        bool(parts)
        and not key.endswith(("/", "_$folder$"))
        and not any(map(_is_unfinished, parts))
    )


def _is_unfinished(name: str) -> bool:
    return name.startswith((".", "~")) or name in _MARKERS or name.lower().endswith(_UNFINISHED)


def _stop(error: OSError) -> None:
    """Stop a walk at a folder that cannot be read; one that is not there, or went away, holds
    nothing.
    """
    if not isinstance(error, FileNotFoundError):
        raise error


def _stop_at(folder: Path) -> Callable[[OSError], None]:
    """Stop a walk where its first folder cannot be read; others below it, which are another's,
    are passed over.
    """

    def stop(error: OSError) -> None:
        is_below = error.filename is not None and Path(error.filename) != folder
        if not (isinstance(error, PermissionError) and is_below):
            _stop(error)

    return stop


_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


def _kind(path: Path) -> str | None:
    """Return what is neither a file nor a folder, or cannot be read; None where it can, or went
    away.
    """
    try:
        form = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None
    is_folder = form == stat.S_IFDIR
    if form in _KINDS or os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
        return _KINDS.get(form)
    return f"a {'folder' if is_folder else 'file'} that this user cannot read"


def _holds_anything(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir(follow_symlinks=False):
        return True
    try:
        with os.scandir(entry.path) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
    except OSError:
        # Who lists it says what is the matter with it.
        return True


@dataclass(frozen=True)
class LocalObjectStore:
    """A folder as an object store; sub-folders are parts of keys, and links are not
    followed.
    """

    root: Path
    settle_seconds: float = 0.5
    poll_seconds: float = 0.25

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What the operating system says."""
        return (OSError,)

    def objects(self, prefix: str) -> list[StoredObject]:
        """Return the finished files below a folder that can be read, by (modified time, key).

        None where it does not exist. What cannot be read is passed over: it would block all
        others.
        """
        return self._listed(prefix, is_finished)

    def unfinished(self, prefix: str) -> list[StoredObject]:
        """Return the files below a folder that are hidden, half-written or markers, and can be
        read.
        """
        return self._listed(prefix, lambda key: not is_finished(key))

    def _listed(self, prefix: str, is_meant: Callable[[str], bool]) -> list[StoredObject]:
        folder = self._path(prefix)
        items = []
        for parent, _, names in os.walk(folder, onerror=_stop_at(folder)):
            for path in map(Path(parent).joinpath, names):
                key = path.relative_to(folder).as_posix()
                item = self.stat(f"{prefix}{key}") if is_meant(key) else None
                if item and os.access(path, os.R_OK):
                    items.append(item)
        return sorted(items, key=lambda item: (item.modified_at, item.key))

    def passed_over(self, prefix: str) -> list[PassedOver]:
        """Return the links, pipes, sockets and devices below a folder, and what cannot be read,
        by key.
        """
        folder = self._path(prefix)
        entries = []
        for parent, folders, files in os.walk(folder, onerror=_stop_at(folder)):
            for path in map(Path(parent).joinpath, (*folders, *files)):
                key, kind = path.relative_to(folder).as_posix(), _kind(path)
                if kind and is_finished(key):
                    entries.append(PassedOver(f"{prefix}{key}", kind))
        return sorted(entries, key=lambda entry: entry.key)

    def is_being_written(self, key: str) -> bool | None:
        """Whether a process has the file open to write it, as one whose network stands still."""
        return is_open_for_writing(self._path(key))

    def occupied(self, prefix: str) -> set[str]:
        """Return the names of the folders directly below a folder that hold anything, and of what
        else stands there: links, and what cannot be read.
        """
        folder = self._path(prefix)
        try:
            with os.scandir(folder) as entries:
                return {entry.name for entry in entries if _holds_anything(entry)}
        except FileNotFoundError:
            return set()

    def missing(self, prefix: str) -> str | None:
        """Return the path of the folder where it is not there."""
        return None if self._path(prefix).is_dir() else str(self._path(prefix))

    def stat(self, key: str) -> StoredObject | None:
        """Return the file as it is now; None where there is none, or a folder or a link."""
        path = self._path(key)
        if path.is_symlink() or not path.is_file():
            return None
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        # ctime too: a copy that keeps the time of its source leaves mtime and size as they
        # were.
        version = f"{status.st_ino}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_size}"
        modified_at = _EPOCH + timedelta(microseconds=status.st_mtime_ns // 1000)
        return StoredObject(key, modified_at, status.st_size, version)

    def exists(self, key: str) -> bool:
        """Whether there is a file."""
        return self.stat(key) is not None

    def open(self, key: str) -> BinaryIO:
        """Open a file to read; unbuffered, since it is read in large blocks.

        What took its place is not opened: of a pipe, that would wait until somebody writes.
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
        """Rename a file that is still as it was seen; copied first where the inbox is on
        another disk.
        """
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
        """Close a moved file to others; one of another user, who alone could do so, is replaced
        by a copy.
        """
        try:
            target.chmod(_PRIVATE)
        except PermissionError:
            self.put(target, target.relative_to(self.root).as_posix())
        return True

    def _move_across_disks(self, seen: StoredObject, key: str) -> bool:
        self.put(self._path(seen.key), key)
        # Of a file that went away meanwhile, the copy may be the only one.
        if self.remove(seen) or not self._path(seen.key).exists():
            return True
        self._path(key).unlink()
        return False

    def remove(self, seen: StoredObject) -> bool:
        """Remove a file that is still as it was seen."""
        if self.stat(seen.key) != seen:
            return False
        try:
            self._path(seen.key).unlink()
        except FileNotFoundError:
            return False
        return True

    def put(self, source: Path, key: str) -> None:
        """Copy a file under a temporary name, then give it its own."""
        self._replace(key, lambda unfinished: shutil.copyfile(source, unfinished))

    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        """Copy a file under a temporary name, give it the time of the one that is still as it
        was seen, and take its place.
        """
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

    def old_versions(self, prefix: str) -> list[StoredObject]:  # noqa: ARG002
        """Return nothing: a folder keeps what is in it."""
        return []

    def open_old(self, old: StoredObject) -> BinaryIO:
        """Find no old version."""
        raise FileNotFoundError(self.uri(old.key))

    def remove_old(self, old: StoredObject) -> None:
        """Find no old version."""
        raise FileNotFoundError(self.uri(old.key))

    def remains(self, prefix: str) -> list[StoredObject]:
        """Return all files below a folder that can be read."""
        return self._listed(prefix, lambda _: True)

    def discard_uploads(self, prefix: str) -> list[str]:  # noqa: ARG002
        """Discard nothing: what is half-written in a folder is a file."""
        return []

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:  # noqa: ARG002
        """Write a file under a temporary name, then give it its own."""
        self._replace(key, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))

    def _replace(self, key: str, write: Callable[[Path], object]) -> None:
        target = self._path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._unfinished(target)
        write(unfinished)
        unfinished.replace(target)

    def _unfinished(self, target: Path) -> Path:
        # A name of its own for each, however long and alike these are; and the same one again,
        # so that what a killed process left is replaced.
        digest = sha256(os.fsencode(target.name)).hexdigest()[:_TEMPORARY_DIGITS]
        unfinished = target.with_name(f".{digest}.tmp")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=_PRIVATE)
        return unfinished

    def remove_folder(self, prefix: str) -> None:
        """Remove a folder with all that is in it."""
        folder = self._path(prefix)
        if folder.is_dir():
            shutil.rmtree(folder)

    def uri(self, key: str) -> str:
        """Return the path of the file."""
        return str(self._path(key))

    def spark_uri(self, key: str) -> str:
        """Return the path of the file as a URI; Hadoop takes it as it stands."""
        return f"file://{self._path(key)}"

    def _path(self, key: str) -> Path:
        parts = PurePosixPath(key).parts
        if not parts or key.startswith("/") or ".." in parts:
            raise UsageError(
                f"{key!r} is not a key; expected a path below {self.root}, without '..'."
            )
        return self.root / key
