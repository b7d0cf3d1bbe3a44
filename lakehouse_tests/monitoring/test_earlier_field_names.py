"""The alerts of a home that version 0.1 wrote are read on, and damaged files are named."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.acknowledgements import find_alert
from lakehouse.monitoring.alert_state import read_state, state_file, write_state
from lakehouse.monitoring.heartbeat import read_heartbeat
from lakehouse.monitoring.incidents import Firing, Incident
from lakehouse.monitoring.silences import Silence, add_silence, read_silences
from lakehouse.orchestration.incident_reports import read_reports
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit
DAYS = frozenset({"2026-03-01", "2026-03-02"})


def at(minute: int) -> datetime:
    return datetime(2026, 11, 24, 8, minute, tzinfo=UTC)


@pytest.fixture
def earlier(settings: Settings, tmp_path: Path) -> Settings:
    shutil.copytree(Path(__file__).parent / "home_of_version_0_1", tmp_path / "earlier")
    return replace(settings, home=tmp_path / "earlier")


def test_open_incidents_of_version_0_1_are_read_on(earlier: Settings) -> None:
    incidents = read_state(earlier).open

    assert incidents["blocked gold.days"] == Incident(
        Firing(
            "blocked gold.days",
            "blocked",
            at(1),
            "error",
            "gold.days is held back: rule r refused it",
            ("1 of 2 rows",),
            ("Run: here",),
            ("lakehouse retry gold.days",),
            "gold.days",
            "data",
            "abc",
            DAYS,
            brief="rule r",
        ),
        at(1),
        at(1),
        2,
        DAYS,
        notified_at=at(4),
        alerts=1,
        notified_size=3,
        notified_causes=("r",),
        acknowledged="somebody: why",
    )
    kinds = {key: incident.firing.kind for key, incident in incidents.items()}
    assert kinds == {
        "blocked gold.days": "blocked",
        "overdue silver.fruits": "overdue",
        "monitoring checks": "monitor",
    }


def test_queues_cursors_and_closed_incidents_of_version_0_1_are_read_on(
    earlier: Settings,
) -> None:
    state = read_state(earlier)
    queue = state.queues["slack-1a2b3c4d"]

    assert [(parcel.alert.key, parcel.tries) for parcel in queue.parcels] == [
        ("blocked gold.days", 2)
    ]
    assert [(alert.key, alert.kind) for alert in queue.deferred] == [
        ("overdue silver.fruits", "overdue")
    ]
    assert (queue.posted_at, queue.summary_at, queue.failures, queue.retry_at) == (
        (at(4),),
        at(4),
        2,
        at(5),
    )
    assert state.queues["file"].waiting == 0
    assert state.cursors == {"looked_at": "2026-11-24T08:04:00+00:00", "quarantined": {}}
    assert state.closed == {"overdue gold.days": at(0)}


def test_what_was_read_is_written_and_read_again(earlier: Settings) -> None:
    state = read_state(earlier)
    write_state(earlier, state)

    assert "broke" not in state_file(earlier).read_text()
    assert read_state(earlier) == state


def test_an_alert_of_version_0_1_belongs_to_its_incident(earlier: Settings) -> None:
    assert find_alert(earlier, "aaaa").key in read_state(earlier).open


def test_silences_reports_and_the_heartbeat_of_version_0_1_are_read_on(
    earlier: Settings,
) -> None:
    known = Silence("silver.*", at(9), "somebody", "why", at(1))
    assert read_silences(earlier) == (known,)
    add_silence(earlier, replace(known, table="gold.*"))
    assert [silence.table for silence in read_silences(earlier)] == ["silver.*", "gold.*"]

    notes = list(read_reports(earlier))
    assert [(note.at, note.resolved) for note in notes] == [
        (at(1), ""),
        (at(2), "Spark was started again."),
    ]
    assert notes[0].report.lines == ("Killed by signal 9.",)

    heartbeat = read_heartbeat(earlier)
    assert heartbeat is not None
    assert (heartbeat.at, heartbeat.places) == (at(4), ("file", "log"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "JSONDecodeError"),
        ('{"open": {"a": {}}, "queues": {}, "cursors": {}}', "open.a.firing: Field required"),
        ('{"queues": {}, "cursors": {}}', "KeyError: 'open'"),
        ("[]", "list indices"),
    ],
)
def test_a_damaged_state_is_named_with_what_is_wrong(
    earlier: Settings, content: str, problem: str
) -> None:
    state_file(earlier).write_text(content)
    with pytest.raises(LakehouseError) as raised:
        read_state(earlier)
    assert str(state_file(earlier)) in str(raised.value)
    assert problem in str(raised.value)
    assert "expected its own JSON" in str(raised.value)
