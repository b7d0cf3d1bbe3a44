"""Collect the files of a home's inbox in a process with limited address space."""

import json
import re
import resource
import sys
from pathlib import Path

from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse_tests.ingestion.conftest import FRUITS


def main(home: Path, limit_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    with lock_feed(FRUITS, home) as ingest:
        delivery = collect_files(LocalObjectStore(home, settle_seconds=0), ingest)
    rejected = {file.source_file: file.why.reason for file in delivery.rejected}
    rows = {file.source_file: file.rows for file in delivery.files}
    sys.stdout.write(
        json.dumps({"rejected": rejected, "rows": rows, "held_bytes": _most_held_bytes()})
    )


def _most_held_bytes() -> int:
    """The most memory that this program held.

    Not `ru_maxrss`: it counts what the process held before it became this program, which is as
    much as the one that started it.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)[1]) * 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
