"""Tables that are worth a look: where something changed, and where time has passed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lakehouse.maintenance.planner import Known, plan_upkeep
from lakehouse.maintenance.upkeep_cursor import UpkeepCursor
from lakehouse_tests.maintenance.sick_tables import NOW, carried_out, partition, past, table

pytestmark = pytest.mark.unit


def test_a_table_is_looked_at_until_nothing_is_due_then_when_it_changed_or_time_has_passed() -> (
    None
):
    snapshots = tuple(NOW - timedelta(days=days) for days in (20, 5, 4, 3, 2, 1))
    health = table("silver.t", partition(small=12), snapshot_times=snapshots)
    place = {"silver.t": health.metadata_location}
    looks = UpkeepCursor.from_json(None)
    assert looks.tables_to_check(place, NOW) == ["silver.t"]

    plan = plan_upkeep([health], Known(), NOW)
    looks = looks.after(plan, {"silver.t": health})
    assert looks.tables_to_check(place, NOW) == ["silver.t"], "something was due"

    (after,), records = carried_out(plan, [health], NOW)
    place = {"silver.t": after.metadata_location}
    again = plan_upkeep([after], Known(past=past(*records)), NOW)
    looks = looks.after(again, {"silver.t": after})
    looks = UpkeepCursor.from_json(looks.to_json())
    assert looks.tables_to_check(place, NOW) == []
    assert looks.tables_to_check({"silver.t": "other.json"}, NOW) == ["silver.t"]
    # Files may be listed again in seven days; the first snapshot is old enough in ten.
    assert looks.tables_to_check(place, NOW + timedelta(days=6.9)) == []
    assert looks.tables_to_check(place, NOW + timedelta(days=7)) == ["silver.t"]


def test_a_table_that_waits_for_nothing_is_not_looked_at_again() -> None:
    health = replace(table("silver.t"), snapshot_id=None)
    looks = UpkeepCursor().after(plan_upkeep([health], Known(), NOW), {"silver.t": health})
    place = {"silver.t": health.metadata_location}
    assert looks.tables_to_check(place, NOW + timedelta(days=999)) == []


def test_one_that_cannot_be_read_is_looked_at_again_once_its_metadata_is_elsewhere() -> None:
    plan = plan_upkeep([], Known(), NOW)
    looks = UpkeepCursor().after(plan, {}, {"silver.t": "gone.json"})
    assert looks.tables_to_check({"silver.t": "gone.json"}, NOW) == []
    assert looks.tables_to_check({"silver.t": "next.json"}, NOW) == ["silver.t"]
