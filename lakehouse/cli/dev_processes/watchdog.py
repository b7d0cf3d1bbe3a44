"""Ends process groups when standard input ends with the command.

Each line has the number of a group; the negative number of a group that has ended removes it,
since another process can get that number.
"""

import os
import signal
import sys
import time

GRACE_SECONDS = 5.0


def main() -> None:
    """Wait for the end of the input, then end the groups: first politely, then for good."""
    # A Ctrl-C is the command's to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        watched = watched | {number} if number > 0 else watched - {-number}
    groups = sorted(watched)
    for sent in (signal.SIGTERM, signal.SIGKILL):
        groups = [group for group in groups if _signal(group, sent)]
        if not groups:
            return
        time.sleep(GRACE_SECONDS)


def _signal(group: int, sent: signal.Signals) -> bool:
    try:
        os.killpg(group, sent)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
