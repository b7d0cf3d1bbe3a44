"""Rows of other partitions are looked at only where some can be versions of what came."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from lakehouse.iceberg.read.inputs import existing_rows
from lakehouse.iceberg.read.pinned_frames import _is_empty_outside
from lakehouse.iceberg.values.value_ranges import AllPartitions
from lakehouse.iceberg.values.write_context import Partitions, Run

pytestmark = pytest.mark.unit

MONDAY, TUESDAY = date(2024, 1, 1), date(2024, 1, 2)
ELSEWHERE = existing_rows("silver.visits", by="day", outside=True)
EVERY = AllPartitions(((MONDAY, MONDAY + timedelta(7)),))
OF_MONDAY = Run("run", Partitions((str(MONDAY),), ((MONDAY, TUESDAY),), EVERY))


@pytest.mark.parametrize(
    ("affected", "is_none"),
    [
        ((), True),
        ((MONDAY,), True),
        ((MONDAY, TUESDAY), False),
        ((None,), False),
        (None, False),
    ],
)
def test_none_are_elsewhere_where_all_stand_in_the_partitions_of_the_run(
    affected: Collection[date | None] | None, is_none: bool
) -> None:
    assert _is_empty_outside(ELSEWHERE, OF_MONDAY, affected) is is_none


def test_a_moment_of_another_partition_is_elsewhere() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    hours = tuple((noon + timedelta(hours=at), noon + timedelta(hours=at + 1)) for at in (0, 1))
    run = Run("run", Partitions(("12",), hours[:1], AllPartitions(((noon, hours[1][1]),))))
    assert _is_empty_outside(ELSEWHERE, run, {noon + timedelta(minutes=59)})
    assert not _is_empty_outside(ELSEWHERE, run, {noon + timedelta(minutes=60)})


def test_rows_of_the_partitions_themselves_are_read_whatever_is_known() -> None:
    here = replace(ELSEWHERE, outside=False)
    assert not _is_empty_outside(here, OF_MONDAY, ())
