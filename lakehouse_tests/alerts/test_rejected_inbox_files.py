"""Rejected files, until they are removed or a file with the same name is landed."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse_tests.alerts.facts import reject
from lakehouse_tests.alerts.watch import Watch

SHORT = "feed fruits: file short was rejected"


def land(watch: Watch, name: str) -> None:
    landed = dg.MetadataValue.table([dg.TableRecord({"file": name, "rows": 1})])

    @dg.asset(key=["silver", "fruits"])
    def bronze():
        return dg.MaterializeResult(metadata={"landed": landed})

    assert dg.materialize([bronze], instance=watch.instance).success


def test_a_rejected_file_sends_one_message(watch: Watch) -> None:
    reject(watch, "short")
    (alert,) = watch.round()
    assert alert.title == SHORT
    assert alert.lines[0].startswith(
        "missing column berry: found a header with id; expected id, berry. None"
    )
    assert watch.titles() == []


def test_a_removed_file_is_resolved(watch: Watch) -> None:
    reject(watch, "short")
    watch.round()
    for file in (watch.settings.home / "rejected" / "fruits").iterdir():
        file.unlink()
    assert watch.titles() == [f"Resolved: {SHORT}"]


@pytest.mark.long
def test_a_file_that_is_landed_and_rejected_again_is_another_incident(watch: Watch) -> None:
    for _ in range(2):
        reject(watch, "short")
        assert watch.titles() == [SHORT]
        land(watch, "short")
        assert watch.titles() == [f"Resolved: {SHORT}"]


def test_a_copied_reason_is_no_incident(watch: Watch) -> None:
    reject(watch, "short", at=datetime.now(UTC) - timedelta(days=1))
    watch.round()
    land(watch, "short")
    watch.round()
    (reason,) = (watch.settings.home / "rejected" / "fruits").glob("*.reason.json")
    reason.touch()
    assert watch.titles() == []


def test_a_file_that_a_person_rejected_is_no_incident(watch: Watch) -> None:
    reject(watch, "short", reason="rejected by a person")
    assert watch.titles() == []
