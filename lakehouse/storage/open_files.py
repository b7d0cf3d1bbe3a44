"""Whether some process still has a file open to write it, on a Linux that tells."""

import fcntl
import os
import signal
from errno import EAGAIN
from pathlib import Path

_TELLS = hasattr(fcntl, "F_SETLEASE")


def is_open_for_writing(path: Path) -> bool:
    """Whether a process has a file open to write it.

    The system refuses a lease for readers where there is one. False where it does not tell: on
    other systems, on network disks, and of files of other users.
    """
    if not _TELLS:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Who opens it to write while we hold the lease has us told by a signal, and waits until
        # it is closed: by one that is ignored, in place of SIGIO, which ends a process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == EAGAIN
    finally:
        os.close(descriptor)
    return False
