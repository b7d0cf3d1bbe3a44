"""Ends process groups, one per line of standard input, when the input ends with the command."""

import os
import signal
import sys
import time

GRACE_SECONDS = 5.0


def main() -> None:
    """Wait for the end of the input, then end the groups: first politely, then for good."""
    # A Ctrl-C is the command's to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups = [int(line) for line in sys.stdin]
    for number in (signal.SIGTERM, signal.SIGKILL):
        groups = [group for group in groups if _signal(group, number)]
        if not groups:
            return
        time.sleep(GRACE_SECONDS)


def _signal(group: int, number: signal.Signals) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
