"""A table of tiny appends, updates and deletes, with a tag and a branch: the steps in their safe
order make it whole, and then find nothing to do.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import files, read_manifests
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_orphans import remove_lost_metadata, remove_orphans
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.upkeep.compaction import compact
from lakehouse.upkeep.manifest_rewrite import rewrite_manifests
from lakehouse.upkeep.stale_branches import drop_stale_branches
from lakehouse_tests.iceberg.upkeep.tables import (
    MERGE_ON_READ,
    NAME,
    TARGET_BYTES,
    create,
    paths_by_partition,
    rows,
)

KEPT = 1
"""Of those that are older than the upkeep, which adds some itself."""
OWN_SNAPSHOTS = 3
"""Compaction, the removal of its dangling deletes, manifests."""
HEALTHY = -1
"""A partition of one file, which nothing is to touch."""
EACH_COMMIT_ITS_MANIFEST = {"commit.manifest-merge.enabled": "false"}
_DELETES_EVERY = 10
_UPDATES_EVERY = 15


def make_sick(engine: Engine, commits: int, partitions: int) -> None:
    """Write to a table in many tiny commits; a tag and a branch point into the middle.

    One statement of SQL for each takes 0.15 s however many there were. PyIceberg copies all
    snapshots at each commit: 0.7 s after 200 of them, on the same busy machine.
    """
    properties = {**MERGE_ON_READ, **EACH_COMMIT_ITS_MANIFEST}
    sick = create(engine, "part bigint, id bigint, amount bigint", "part", properties)
    in_one_file = f"SELECT /*+ REPARTITION(1) */ {HEALTHY}, id, 0 FROM range(100)"
    engine.sql(f"INSERT INTO {sick} {in_one_file}")
    chosen = random.Random(7)
    for commit in range(commits):
        if commit == commits // 3:
            engine.sql(f"ALTER TABLE {sick} CREATE TAG month_end")
        if commit == commits // 2:
            engine.sql(f"ALTER TABLE {sick} CREATE BRANCH experiment")
        part = chosen.randrange(partitions)
        if commit % _DELETES_EVERY == _DELETES_EVERY - 1:
            engine.sql(f"DELETE FROM {sick} WHERE part = {part} AND id % 5 = 0")
        elif commit % _UPDATES_EVERY == _UPDATES_EVERY - 1:
            engine.sql(
                f"UPDATE {sick} SET amount = amount + 1 WHERE part = {part} AND id % 3 = 0"
            )
        else:
            rows = [f"({part}, {commit * 10 + n}, {commit})" for n in range(4)]
            engine.sql(
                f"INSERT INTO {sick} SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}"
            )


def all_steps(engine: Engine, now: datetime) -> Iterator[StepResult]:
    """Do each step in its turn, whether or not it is due."""
    week_ago = now - timedelta(days=7)
    yield compact(engine, NAME, target_bytes=TARGET_BYTES)
    yield expire_snapshots(engine, NAME, older_than=now, keep=KEPT)
    yield rewrite_manifests(engine, NAME)
    yield remove_orphans(engine, NAME, older_than=week_ago)
    yield remove_lost_metadata(engine, NAME, older_than=week_ago)
    yield drop_stale_branches(engine, NAME, refused_before=week_ago)


def heal_and_check(engine: Engine) -> None:
    """Do all steps, and see what the table is afterwards."""
    versions = ("", "VERSION AS OF 'month_end'", "VERSION AS OF 'experiment'")
    before = [rows(engine, version) for version in versions]
    count, healthy = len(files(engine, NAME)), _healthy(engine)

    now = datetime.now(UTC)
    results = {result.step: result for result in all_steps(engine, now)}

    outcomes = {name: result.outcome for name, result in results.items()}
    # A compaction that leaves no entry of a manifest leaves that out.
    assert outcomes.pop("rewrite_manifests") in ("done", "skipped")
    assert outcomes == {
        "compact": "done",
        "expire_snapshots": "done",
        "remove_orphans": "skipped",
        "remove_lost_metadata": "skipped",
        "drop_branches": "skipped",
    }
    assert [rows(engine, version) for version in versions] == before
    assert len(files(engine, NAME)) <= 0.05 * count
    assert _healthy(engine) == healthy
    step_metrics = results["compact"].step_metrics
    assert step_metrics["added_bytes"] <= 1.1 * step_metrics["rewritten_bytes"]
    history = read_history(engine, NAME)
    assert len(history.line) <= KEPT + OWN_SNAPSHOTS
    assert len(read_manifests(engine.catalog.load(NAME))) == 1
    state = history.main
    again = {result.step: result.outcome for result in all_steps(engine, now)}
    assert set(again.values()) == {"skipped"}, again
    assert read_history(engine, NAME).main == state


def _healthy(engine: Engine) -> set[str]:
    return paths_by_partition(engine)[PartitionKey(0, (("part", HEALTHY),))]


@pytest.mark.long
def test_sixty_commits(embedded_engine: Engine) -> None:
    make_sick(embedded_engine, commits=60, partitions=2)

    heal_and_check(embedded_engine)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_thousand_commits_over_fifty_partitions(embedded_engine: Engine) -> None:
    make_sick(embedded_engine, commits=2000, partitions=50)

    heal_and_check(embedded_engine)
