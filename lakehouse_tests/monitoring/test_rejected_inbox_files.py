"""A rejected file is told until it is taken away, or one of its name is landed; and again where
it comes again.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse_tests.monitoring.breaks import reject
from lakehouse_tests.monitoring.watch import Watch

SHORT = "feed fruits: file short was rejected"


def land(watch: Watch, name: str) -> None:
    landed = dg.MetadataValue.table([dg.TableRecord({"file": name, "rows": 1})])
    event = dg.AssetMaterialization(["silver", "fruits"], metadata={"landed": landed})
    watch.instance.report_runless_asset_event(event)


@pytest.mark.long
def test_a_rejected_file_is_told_until_it_is_taken_away(watch: Watch) -> None:
    reject(watch, "short")
    (alert,) = watch.look()
    assert alert.title == SHORT
    assert alert.lines[0].startswith(
        "missing column berry: found a header with id; expected id, berry. No row"
    )
    assert watch.says() == []
    for file in (watch.settings.home / "rejected" / "fruits").iterdir():
        file.unlink()
    assert watch.says() == [f"Resolved: {SHORT}"]


def test_a_rejected_file_is_over_once_one_of_its_name_was_landed(watch: Watch) -> None:
    reject(watch, "short")
    watch.look()
    land(watch, "short")
    assert watch.says() == [f"Resolved: {SHORT}"]


@pytest.mark.long
def test_the_same_file_that_is_rejected_again_after_a_good_one_is_told_again(
    watch: Watch,
) -> None:
    reject(watch, "short")
    assert watch.says() == [SHORT]
    land(watch, "short")
    assert watch.says() == [f"Resolved: {SHORT}"]
    reject(watch, "short")
    assert watch.says() == [SHORT]
    assert watch.says() == []
    land(watch, "short")
    assert watch.says() == [f"Resolved: {SHORT}"]


def test_a_reason_that_is_only_copied_is_told_no_more(watch: Watch) -> None:
    reject(watch, "short", at=datetime.now(UTC) - timedelta(days=1))
    watch.look()
    land(watch, "short")
    watch.look()
    (reason,) = (watch.settings.home / "rejected" / "fruits").glob("*.reason.json")
    reason.touch()
    assert watch.says() == []


def test_a_file_that_a_person_rejected_is_not_told(watch: Watch) -> None:
    reject(watch, "short", reason="rejected by a person")
    assert watch.says() == []
