"""Java's compilers: both unless the data is small; the second later in long-lived JVMs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lakehouse.settings import Settings

FIRST_COMPILER = ("-XX:TieredStopAtLevel=1",)
"""Without the second compiler, which takes half of the CPU in the first minute."""
LATER_SECOND_COMPILER = (
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
)
"""The second compiler only for code of each row, and not of each query: it saves a third of the
compilers' CPU time in `lakehouse dev` and in the driver of a cluster.
"""
_LITTLE_BYTES = 20_000_000
_HOLDS_NO_ROWS = {"archive", "dagster", "logs", "rejected", "tmp"}


def compiler_options(settings: Settings) -> tuple[str, ...]:
    """Return the options of a JVM for one command or run, by the size of the home."""
    if settings.is_on_cluster:
        return LATER_SECOND_COMPILER
    is_local = settings.deployment == settings.spark_master.partition("[")[0] == "local"
    return FIRST_COMPILER if is_local and _has_little(settings.home) else ()


def _has_little(home: Path) -> bool:
    total_bytes = 0
    for file in _files(home):
        # Another process may have moved it meanwhile; a link is read by nobody.
        with suppress(FileNotFoundError):
            total_bytes += file.lstat().st_size
        if total_bytes > _LITTLE_BYTES:
            return False
    return True


def _files(home: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(home):
        if Path(folder) == home:
            subfolders[:] = set(subfolders) - _HOLDS_NO_ROWS
        for name in names:
            yield Path(folder, name)
