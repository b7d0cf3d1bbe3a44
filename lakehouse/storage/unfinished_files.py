"""Files that are not complete: by their names, an open writer, or a recent change."""

import fcntl
import os
import signal
from datetime import datetime
from errno import EAGAIN
from pathlib import Path, PurePosixPath

from lakehouse.storage.object_store import ObjectStore, StoredObject

UNTOLD_SECONDS = 5.0
"""The time if open files cannot be detected: a sender's network may stall for longer than a
local process pauses.
"""


def seconds_until_settled(store: ObjectStore, item: StoredObject, now: datetime) -> float:
    """Return how long to wait until an unchanged object is complete; 0 if it is."""
    # If another clock is ahead, the age is negative.
    age_seconds = abs((now - item.modified_at).total_seconds())
    needed_seconds = store.settle_seconds
    if age_seconds < UNTOLD_SECONDS and store.is_being_written(item.key) is None:
        needed_seconds = max(needed_seconds, UNTOLD_SECONDS)
    return max(0.0, needed_seconds - age_seconds)


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
_MARKERS = ("_SUCCESS", "_temporary")


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
