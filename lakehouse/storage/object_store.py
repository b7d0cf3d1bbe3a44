"""Object stores for delivered files: a local folder or a bucket through one interface.

    inbox/<feed>/…              files that wait for ingestion
    archive/<feed>/<date>/…     landed files
    rejected/<feed>/…           rejected files, each with a `.reason.json`
    privacy/rewritten/<feed>/…  the ledger of files rewritten without some rows

Keys are relative to the home or the bucket, with `/` as separator.
"""

import fcntl
import os
import shutil
import signal
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import EAGAIN, ELOOP, EXDEV
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lakehouse.errors import UsageError

_HAS_LEASES = hasattr(fcntl, "F_SETLEASE")
_OWN_DISKS = {
    "bcachefs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "overlay",
    "tmpfs",
    "xfs",
    "zfs",
}
"""Local file systems. NFS and SMB may deny a lease even if no process writes, if the server did
not delegate the file to this machine (`nfs4_proc_setlease` and `cifs_setlease` in Linux).
"""


def is_open_for_writing(path: Path) -> bool | None:
    """Return whether a process has a file open for writing.

    Linux denies a read lease for such a file. None if unknown: on other systems, on network
    disks, and for files of other users.
    """
    if not _HAS_LEASES:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # A process that opens the file for writing while the lease is held waits, and the
        # kernel sends a signal. SIGURG is ignored by default; SIGIO would terminate this
        # process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        is_open = error.errno == EAGAIN and _file_system(path) in _OWN_DISKS
        return True if is_open else None
    finally:
        os.close(descriptor)
    return False


def _file_system(path: Path) -> str:
    # Only needed after a denied lease, which is rare; the import takes longer than the check.
    import psutil

    place = path.resolve()
    mounted = [
        part
        for part in psutil.disk_partitions(all=True)
        if place.is_relative_to(part.mountpoint)
    ]
    # A later mount over the same folder is listed later and hides the earlier one.
    found = max(
        enumerate(mounted), key=lambda item: (len(item[1].mountpoint), item[0]), default=None
    )
    return found[1].fstype if found else ""


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
    """The observed state of an object; any change of the object changes its `version`.

    `modified_at` is in UTC with microseconds, like table timestamps, so that both sort equally.
    """

    key: str
    modified_at: datetime
    size_bytes: int
    version: str
    """Inode, times and size of a local file; the ETag of an S3 object."""


@dataclass(frozen=True)
class PassedOver:
    """An inbox entry that is not a regular readable file and is skipped."""

    key: str
    kind: str
    """A description, such as 'a link'."""


class ObjectStore(ABC):
    """The operations that ingestion and erasure need from a folder or a bucket."""

    @property
    @abstractmethod
    def settle_seconds(self) -> float:
        """How long an object must be unchanged to be complete; 0 if objects appear atomically."""

    @property
    @abstractmethod
    def poll_seconds(self) -> float:
        """The time between two polls; a poll costs time or money."""

    @property
    @abstractmethod
    def object_errors(self) -> tuple[type[Exception], ...]:
        """Exceptions that concern one object; other objects may still be accessible."""

    @abstractmethod
    def objects(self, prefix: str) -> list[StoredObject]:
        """List the finished objects below a prefix that ends in `/`, by (modified time, key)."""

    @abstractmethod
    def unfinished(self, prefix: str) -> list[StoredObject]:
        """List hidden, incomplete and marker objects below a prefix, by (modified time, key)."""

    def passed_over(self, prefix: str) -> list[PassedOver]:  # noqa: ARG002
        """List links, pipes and other entries below a prefix that are not objects, by key."""
        return []

    @abstractmethod
    def is_being_written(self, key: str) -> bool | None:
        """Return whether a process has the object open for writing; None if unknown."""

    @abstractmethod
    def occupied(self, prefix: str) -> set[str]:
        """Return the non-empty folders directly below a prefix, in one query."""

    def missing(self, prefix: str) -> str | None:  # noqa: ARG002
        """Return the location of a prefix if it does not exist, else None."""
        return None

    @abstractmethod
    def stat(self, key: str) -> StoredObject | None:
        """Return the object's current state, or None if it does not exist."""

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        return self.stat(key) is not None

    @abstractmethod
    def open(self, key: str) -> BinaryIO:
        """Open an object for reading from the start.

        :raises FileNotFoundError: it does not exist.
        """

    @abstractmethod
    def move(self, seen: StoredObject, key: str) -> bool:
        """Move an object to another key. Return False if it changed; then it stays.

        If it is overwritten at the same instant, a bucket may still have its previous content
        under the new key.

        :raises FileExistsError: the key exists.
        """

    @abstractmethod
    def remove(self, seen: StoredObject) -> bool:
        """Remove an object. Return False, without changes, if it changed."""

    @abstractmethod
    def put(self, source: Path, key: str) -> None:
        """Copy a local file to a key atomically, replacing an existing object."""

    @abstractmethod
    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        """Replace the content of an object with a local file atomically and return its new
        state. Return None, without changes, if it changed.

        The previous content is deleted, including old versions in a bucket. A folder retains
        the modification time.
        """

    def old_versions(self, prefix: str) -> list[StoredObject]:  # noqa: ARG002
        """List old versions, also of deleted objects, in a versioned bucket, by key."""
        return []

    def open_old(self, old: StoredObject) -> BinaryIO:
        """Open an old version for reading.

        :raises FileNotFoundError: it does not exist.
        """
        raise FileNotFoundError(self.uri(old.key))

    def remove_old(self, old: StoredObject) -> None:
        """Remove an old version permanently."""
        raise FileNotFoundError(self.uri(old.key))

    @abstractmethod
    def remains(self, prefix: str) -> list[StoredObject]:
        """List all below a prefix, with hidden objects, old versions and uploads."""

    def discard_uploads(self, prefix: str) -> list[str]:  # noqa: ARG002
        """Abort incomplete uploads of killed processes, and return their keys."""
        return []

    @abstractmethod
    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:
        """Write UTF-8 text, replacing an existing object.

        :param content_type: the content type of an S3 object.
        """

    @abstractmethod
    def remove_folder(self, prefix: str) -> None:
        """Remove all below a prefix that ends in `/`, also what `remains` lists."""

    @abstractmethod
    def uri(self, key: str) -> str:
        """Return the object's address for messages."""

    @abstractmethod
    def spark_uri(self, key: str) -> str:
        """Return the address for Spark's Hadoop file systems."""


def is_finished(key: str) -> bool:
    """Return whether a key, with its folders, is not hidden, incomplete or a marker."""
    parts = PurePosixPath(key).parts
    return (
        bool(parts)
        and not key.endswith(("/", "_$folder$"))
        and not any(map(_is_unfinished, parts))
    )


def _is_unfinished(name: str) -> bool:
    return name.startswith((".", "~")) or name in _MARKERS or name.lower().endswith(_UNFINISHED)


def _stop_at(folder: Path) -> Callable[[OSError], None]:
    """Stop a walk if its first folder is unreadable; a missing folder is empty."""

    def stop(error: OSError) -> None:
        is_below = error.filename is not None and Path(error.filename) != folder
        is_skipped = isinstance(error, PermissionError) and is_below
        if not isinstance(error, FileNotFoundError) and not is_skipped:
            raise error

    return stop


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
        for parent, _, names in os.walk(folder, onerror=_stop_at(folder)):
            for path in map(Path(parent).joinpath, names):
                key = path.relative_to(folder).as_posix()
                item = self.stat(f"{prefix}{key}") if is_meant(key) else None
                if item and os.access(path, os.R_OK):
                    items.append(item)
        return sorted(items, key=lambda item: (item.modified_at, item.key))

    def passed_over(self, prefix: str) -> list[PassedOver]:
        folder = self._path(prefix)
        entries = []
        for parent, folders, files in os.walk(folder, onerror=_stop_at(folder)):
            for path in map(Path(parent).joinpath, (*folders, *files)):
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
