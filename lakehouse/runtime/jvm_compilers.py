"""Java's compilers: both unless the data is small; the second later in long-lived JVMs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lakehouse.settings import Settings

FIRST_COMPILER = ("-XX:TieredStopAtLevel=1",)
"""The second compiler makes code that is twice as fast, and takes half of the processor in the
first minute. `benchmarks/bench_bnpl.py` loads five million rows on either choice, and fails
where both compilers are slower there than the first alone.
"""
LATER_SECOND_COMPILER = (
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
)
"""The second compiler for what is called twenty times as often as by itself: what is done for each
of many rows is, within a second of them, and what is done for each query is not.

For the Spark of `lakehouse dev`, of which people wait for small files: up to the end of its
warm-up its compilers took 27.7 of 53.7 seconds of the processor, and like this 17.8 of 46.4. And
for the driver of a cluster, where many rows are only those of metadata.
"""
_LITTLE_BYTES = 20_000_000
_HOLDS_NO_ROWS = {"archive", "dagster", "logs", "rejected", "tmp"}


def compiler_options(settings: Settings) -> tuple[str, ...]:
    """Return the options of a JVM that starts for one command or run.

    What a command is to read cannot be told from its name, but no more than is in the home,
    where files that `--path` names are copied too. Elsewhere nobody knows, and both compilers
    work. On a cluster it is executors that compute, and the driver plans.
    """
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
