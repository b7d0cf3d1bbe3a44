"""Tags that only the code reads are hidden in Dagster's UI."""

import pytest
from dagster._core.storage.tags import TagType, get_tag_type

from lakehouse.ingestion.ad_hoc_files import AD_HOC_TAG
from lakehouse.orchestration.blocked_tables import STALE, blocked_tag
from lakehouse.orchestration.runs_for_stale_tables import BACKFILL, INCREMENTAL
from lakehouse.quality.metrics.record_metrics import RECORDED
from lakehouse.runtime.processes import PROCESS_TAG

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "key",
    [AD_HOC_TAG, *INCREMENTAL, PROCESS_TAG, RECORDED, STALE, blocked_tag("a.b")],
)
def test_tags_that_only_the_code_reads_are_hidden(key: str) -> None:
    assert get_tag_type(key) is TagType.HIDDEN


def test_tags_for_people_are_shown() -> None:
    assert get_tag_type(BACKFILL) is not TagType.HIDDEN
