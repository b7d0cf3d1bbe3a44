"""What a run is to compute is told to it by its tags, and read back from them."""

import random

import pytest

from lakehouse.orchestration.dagster_internals import DEFERS_ASSET_EVENTS
from lakehouse.orchestration.partitions.partition_bounds import (
    computed_bounds,
    computed_of,
    range_of,
    range_tags,
)
from lakehouse.orchestration.partitions.pending_run import PendingRun

pytestmark = pytest.mark.unit

KEYS = [f"2026-03-{day:02}" for day in range(1, 32)]
FIRST, LAST = KEYS[0], KEYS[-1]


def tags_of(run: PendingRun) -> dict[str, str]:
    assert run.partitions is not None
    return {**range_tags(*run.partitions), **run.tags}


def run_of(*computed: str) -> PendingRun:
    return PendingRun.of_partitions(
        ["silver.a", "gold.all"], computed, KEYS, partitioned=["silver.a"]
    )


def test_of_assets_that_leave_none_out_dagster_notes_what_is_computed() -> None:
    run = PendingRun.of_partitions(
        ["gold.plain"], KEYS[3:9], KEYS, partitioned=["gold.plain"], leaves_gaps=False
    )
    assert (run.partitions, run.tags) == ((KEYS[3], KEYS[8]), {})


def test_a_gap_is_left_out_and_noted_by_the_asset() -> None:
    run = run_of(FIRST, LAST)
    assert DEFERS_ASSET_EVENTS.items() <= run.tags.items()
    assert range_of(tags_of(run)) == (FIRST, LAST)
    assert computed_of(tags_of(run), KEYS) == [FIRST, LAST]
    assert run.bounds == (FIRST, FIRST, LAST, LAST)


def test_whole_tables_have_no_bounds() -> None:
    run = PendingRun(("gold.all",))
    assert (run.bounds, run.tags) == ((), {})


@pytest.mark.parametrize("seed", range(30))
def test_what_is_asked_for_is_what_the_run_computes(seed: int) -> None:
    chance = random.Random(seed)
    computed = sorted(chance.sample(KEYS, chance.randint(1, len(KEYS))))
    run = run_of(*computed)
    first, last = run.partitions or ("", "")
    within = KEYS[KEYS.index(first) : KEYS.index(last) + 1]
    assert list(computed_of(tags_of(run), within)) == computed
    assert computed_bounds(tags_of(run)) == run.bounds
