"""Whether some process still has a file open to write it, on a Linux that tells."""

import fcntl
import os
import signal
from errno import EAGAIN
from pathlib import Path

_TELLS = hasattr(fcntl, "F_SETLEASE")
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
"""File systems of one machine. NFS and SMB refuse a lease also where nobody writes: of what the
server has not handed over to this machine (`nfs4_proc_setlease` and `cifs_setlease` in Linux).
"""


def is_open_for_writing(path: Path) -> bool | None:
    """Whether a process has a file open to write it.

    The system refuses a lease for readers where there is one. None where it does not tell: on
    other systems, on network disks, and of files of other users.
    """
    if not _TELLS:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Who opens it to write while we hold the lease has us told by a signal, and waits until
        # it is closed: by one that is ignored, in place of SIGIO, which ends a process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        is_told = error.errno == EAGAIN and _file_system(path) in _OWN_DISKS
        return True if is_told else None
    finally:
        os.close(descriptor)
    return False


def _file_system(path: Path) -> str:
    """Return what the file system is called that a file lies on."""
    # Only where a lease was refused, which is rare: it takes longer to load than the look.
    import psutil

    place = path.resolve()
    mounted = [
        part
        for part in psutil.disk_partitions(all=True)
        if place.is_relative_to(part.mountpoint)
    ]
    # What was mounted later over the same folder comes later, and covers the first.
    found = max(
        enumerate(mounted), key=lambda item: (len(item[1].mountpoint), item[0]), default=None
    )
    return found[1].fstype if found else ""
