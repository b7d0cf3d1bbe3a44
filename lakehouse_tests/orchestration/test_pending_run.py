"""What a run is to compute is told to it by its tags, and read back from them."""

import random

import pytest

from lakehouse.orchestration.dagster_internals import NOTES_ITS_ASSETS
from lakehouse.orchestration.partition_bounds import (
    computed_bounds,
    computed_of,
    range_of,
    range_tags,
)
from lakehouse.orchestration.pending_run import PendingRun

pytestmark = pytest.mark.unit

KEYS = [f"2026-03-{day:02}" for day in range(1, 32)]
FIRST, SECOND, LAST = KEYS[0], KEYS[1], KEYS[-1]


def tags_of(run: PendingRun) -> dict[str, str]:
    """The tags that a run gets, with those that Dagster knows partitions by."""
    assert run.partitions is not None
    return {**range_tags(*run.partitions), **run.tags}


def test_without_a_gap_dagster_notes_what_is_computed() -> None:
    run = PendingRun.of_partitions(["silver.a"], {"silver.a": KEYS[3:9]}, KEYS)
    assert (run.partitions, run.tags) == ((KEYS[3], KEYS[8]), {})
    assert run.bounds_of("silver.a") == (KEYS[3], KEYS[8])


def test_a_gap_is_left_out_and_noted_by_the_asset() -> None:
    run = PendingRun.of_partitions(["silver.a"], {"silver.a": [FIRST, LAST]}, KEYS)
    assert NOTES_ITS_ASSETS.items() <= run.tags.items()
    assert range_of(tags_of(run)) == (FIRST, LAST)
    assert computed_of(tags_of(run), "silver.a", KEYS) == [FIRST, LAST]
    assert run.bounds_of("silver.a") == (FIRST, FIRST, LAST, LAST)


def test_each_table_computes_what_it_owes_alone() -> None:
    computed = {"silver.a": [SECOND], "gold.a": [FIRST, SECOND]}
    run = PendingRun.of_partitions(["silver.a", "gold.a", "gold.all"], computed, KEYS)
    found = {table: computed_of(tags_of(run), table, KEYS[:2]) for table in computed}
    assert found == computed


def test_a_table_without_partitions_has_no_bounds_of_its_own() -> None:
    run = PendingRun(("gold.all",))
    assert (run.bounds_of("gold.all"), run.tags) == ((), {})


def test_a_run_of_an_earlier_version_is_read() -> None:
    tags = {"lakehouse/partitions": f'["{FIRST}", "{LAST}"]', **range_tags(FIRST, LAST)}
    assert computed_of(tags, "silver.a", KEYS) == [FIRST, LAST]
    assert computed_bounds(tags, "silver.a") == (FIRST, LAST)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_asked_for_is_what_the_run_computes(seed: int) -> None:
    chance = random.Random(seed)
    tables = [f"silver.{name}" for name in "abc"]
    computed = {
        table: sorted(chance.sample(KEYS, chance.randint(1, len(KEYS)))) for table in tables
    }
    run = PendingRun.of_partitions(tables, computed, KEYS)
    first, last = run.partitions or ("", "")
    within = KEYS[KEYS.index(first) : KEYS.index(last) + 1]
    for table in tables:
        assert list(computed_of(tags_of(run), table, within)) == computed[table]
        assert computed_bounds(tags_of(run), table) == run.bounds_of(table)
