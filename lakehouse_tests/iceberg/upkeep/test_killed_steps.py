"""A killed upkeep step: the table reads the same, and the next run cleans up."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.referenced_files import named_files
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.upkeep.compaction import compact
from lakehouse_tests.iceberg.upkeep.killed_steps import STEPS, leave_orphans, make_table
from lakehouse_tests.iceberg.upkeep.tables import (
    NAME,
    TARGET_BYTES,
    contents,
    make_older,
    rows,
    stored,
)
from lakehouse_tests.processes import KILLED, start

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.fixture
def killed(spark, tmp_path: Path, step: str) -> Iterator[Engine]:
    home = tmp_path / "killed" / "home"
    engine = open_engine(replace(Settings.from_env(), home=home))
    make_table(engine)
    if step == "removal of orphans":
        leave_orphans(engine)
    child = start(home, STEPS[step])
    try:
        assert child.status() == KILLED, f"{step}: {child.said[-3000:]}"
        yield engine
    finally:
        child.kill()


# Each starts a Java of its own to kill, for half a minute: one of them is enough for each run
# of all tests.
@pytest.mark.parametrize("step", STEPS)
def test_the_table_reads_the_same_and_the_next_run_cleans_up(killed: Engine, step: str) -> None:
    engine = killed
    expected = sorted(((number, number % 4) for number in range(400)), key=repr)
    assert rows(engine) == expected
    left_behind = _data_files(engine) - _named(engine)
    assert left_behind

    assert compact(engine, NAME, target_bytes=TARGET_BYTES).outcome == "done"
    expired = expire_snapshots(engine, NAME, older_than=datetime.now(UTC), keep=1)
    assert expired.outcome == "done"
    for file in stored(engine):
        make_older(file, days=8)
    week_ago = datetime.now(UTC) - timedelta(days=7)
    removed = remove_orphans(engine, NAME, older_than=week_ago, most_share=1)

    assert removed.outcome == "done"
    assert _data_files(engine) == _named(engine)
    assert contents(engine) == ["data"] * 4
    assert rows(engine) == expected


def _data_files(engine: Engine) -> set[Path]:
    return {path for path in stored(engine) if path.suffix == ".parquet"}


def _named(engine: Engine) -> set[Path]:
    paths = {Path(key) for key in named_files(engine.catalog.load(NAME))}
    return {path for path in paths if path.suffix == ".parquet"}
