"""What a process does that is about to die: a step of upkeep that ends in its middle."""

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Thread
from time import sleep

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.upkeep.compaction import compact
from lakehouse_tests.iceberg.upkeep.tables import (
    NAME,
    TARGET_BYTES,
    create,
    local_path,
    put_orphan,
)
from lakehouse_tests.processes import engine_of_process, kill_this_process

ORPHANS = 5000
"""So many that they are not all gone before it is seen that one is."""
_SAMPLED = 20
_FOLDER = "data/left-behind"
_LOOK_SECONDS = 0.0005


def make_table(engine: Engine) -> None:
    sick = create(engine, "id bigint, part int", "part")
    for _ in range(2):
        engine.sql(
            f"INSERT OVERWRITE {sick} SELECT /*+ REPARTITION(3) */ id, id % 4 FROM range(400)"
        )


def leave_orphans(engine: Engine) -> None:
    for number in range(ORPHANS):
        put_orphan(engine, f"{_FOLDER}/{number}.parquet", days_old=8)


def compact_and_die() -> None:
    """Die once the first file is written, before any is committed."""
    engine = engine_of_process()
    data = local_path(engine.catalog.load(NAME).location()) / "data"
    before = len(list(data.rglob("*.parquet")))
    _die_once(engine, lambda: len(list(data.rglob("*.parquet"))) > before)
    compact(engine, NAME, target_bytes=TARGET_BYTES)


def expire_and_die() -> None:
    """Die once the snapshots are gone, before or while their files are deleted."""
    engine = engine_of_process()
    before = len(read_history(engine, NAME).snapshots)
    _die_once(engine, lambda: len(read_history(engine, NAME).snapshots) < before)
    expire_snapshots(engine, NAME, older_than=datetime.now(UTC), keep=1)


def remove_orphans_and_die() -> None:
    engine = engine_of_process()
    folder = local_path(engine.catalog.load(NAME).location()) / _FOLDER
    some = [folder / f"{number}.parquet" for number in range(0, ORPHANS, _SAMPLED)]
    _die_once(engine, lambda: not all(path.exists() for path in some))
    week_ago = datetime.now(UTC) - timedelta(days=7)
    remove_orphans(engine, NAME, older_than=week_ago, most_share=1)


def _die_once(engine: Engine, is_time: Callable[[], bool]) -> None:
    # By itself the JVM ends what it does before it follows.
    jvm = engine.spark._jvm.java.lang.ProcessHandle.current().pid()

    def watch() -> None:
        while not is_time():
            sleep(_LOOK_SECONDS)
        os.kill(jvm, signal.SIGKILL)
        kill_this_process()

    Thread(target=watch, daemon=True).start()


STEPS = {
    "compaction": compact_and_die,
    "expiry": expire_and_die,
    "removal of orphans": remove_orphans_and_die,
}
