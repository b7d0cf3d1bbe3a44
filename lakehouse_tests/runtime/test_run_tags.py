"""Tags that only the code reads: hidden where they are stored, and read under either key."""

import dagster as dg
import pytest
from dagster._core.storage.tags import HIDDEN_TAG_PREFIX, TagType, get_tag_type
from dagster._core.test_utils import create_run_for_test

from lakehouse.orchestration.blocked_tables import STALE, asked_for, blocked_tag, was_refused
from lakehouse.orchestration.runs_for_stale_tables import (
    BACKFILL,
    INCREMENTAL,
    is_full_recompute,
)
from lakehouse.runtime.processes import PROCESS_TAG, Process
from lakehouse.runtime.run_tags import HIDDEN_PREFIX, hidden_tags, readable_tags

pytestmark = pytest.mark.unit


def test_what_only_the_code_reads_is_hidden_by_dagster() -> None:
    assert HIDDEN_PREFIX.startswith(HIDDEN_TAG_PREFIX)
    (key,) = hidden_tags({STALE: "0123"})
    assert get_tag_type(key) is TagType.HIDDEN


def test_what_says_something_to_people_is_not() -> None:
    tags = {BACKFILL: "silver.fruits", "lakehouse/feed": "fruits", "team": "fruit"}
    assert hidden_tags(tags) == tags


@pytest.mark.parametrize(
    "tags",
    [INCREMENTAL, {PROCESS_TAG: "host 1 2.0"}, {blocked_tag("silver.fruits"): "0123"}],
)
def test_it_is_read_as_it_was_written(tags: dict[str, str]) -> None:
    assert readable_tags(hidden_tags(tags)) == tags
    assert hidden_tags(hidden_tags(tags)) == hidden_tags(tags)


@pytest.mark.parametrize("stored", [hidden_tags, dict], ids=["now", "by an earlier version"])
def test_a_stored_run_is_understood(stored) -> None:
    assert not is_full_recompute(stored(INCREMENTAL))
    assert Process.from_tags(stored({PROCESS_TAG: "host 1 2.0"})) == Process("host", 1, 2.0)
    assert was_refused(stored({blocked_tag("silver.fruits"): "0123"}))
    with dg.DagsterInstance.ephemeral() as instance:
        run = create_run_for_test(instance, tags=stored({STALE: "0123"}))
        found = asked_for(instance, "0123")
        assert found is not None
        assert found.run_id == run.run_id
