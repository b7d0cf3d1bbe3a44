"""Who is notified of a request: before it is due, when it is late, when nobody saw to an exception,
and when its runs fail; until it is verified.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse.alerts.alerts_sensor import detect_and_dispatch
from lakehouse.alerts.incidents import Alert
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.sinks import read_alerts
from lakehouse.errors import LakehouseError
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.privacy import erasure_steps
from lakehouse.privacy.detect_late_requests import detect_late_requests
from lakehouse.privacy.requests import Unreachable, a_month_after
from lakehouse_tests.privacy.an_erasure import ANNA, HERS, Home
from lakehouse_tests.privacy.erasure_in_dagster import (
    InDagster,
    fail_with,
    in_dagster,
    let_erasures_do,
)

pytestmark = pytest.mark.unit

MADE_AT = datetime(2026, 11, 10, 12, tzinfo=UTC)
DUE_AT = a_month_after(MADE_AT)


@dataclass
class Monitored:
    """A home with a request, and what people were notified of."""

    dagster: InDagster
    known: int = 0

    def look(self, now: datetime) -> list[Alert]:
        """Monitor once, and return what people are notified of."""
        dagster = self.dagster
        settings = dagster.home.settings
        graph = asset_graph(dagster.definitions)
        context = MonitorContext(dagster.instance, graph, {}, (), settings, now)
        further = {"erasure": detect_late_requests}
        detect_and_dispatch(context, logging.getLogger("lakehouse.alerts"), further)
        alerts = read_alerts(settings)
        news, self.known = alerts[self.known :], len(alerts)
        return news

    def titles(self, now: datetime) -> list[str]:
        """Monitor once, and return the titles."""
        return [alert.title for alert in self.look(now)]

    def fail(self, patch: pytest.MonkeyPatch, error: Exception) -> None:
        """Run the job, which fails."""
        with patch.context() as patched:
            let_erasures_do(patched, fail_with(error))
            assert not self.dagster.run().success


@pytest.fixture
def monitored(there: Home) -> Iterator[Monitored]:
    """A home with a request that was made a while ago, at which somebody looked then."""
    with in_dagster(there) as dagster:
        found = Monitored(dagster)
        assert found.look(MADE_AT) == []
        dagster.request()
        dagster.change(requested_at=MADE_AT, due_at=DUE_AT)
        yield found


def test_a_request_is_told_of_once_a_week_before_it_is_due(monitored: Monitored) -> None:
    week_before = DUE_AT - timedelta(days=7)
    assert monitored.look(week_before - timedelta(minutes=1)) == []

    (alert,) = monitored.look(week_before)

    assert alert.title == "request R-1 is due by 2026-12-10 12:00:00 UTC"
    assert (alert.severity, alert.kind) == ("warn", "erasure")
    assert alert.lines == (
        "It is requested: readers can still see its people.",
        "It is due by 2026-12-10 12:00:00 UTC, a month after it was made.",
        "Next: lakehouse erase --request R-1",
        "Next: lakehouse erasures R-1",
    )
    assert monitored.look(week_before + timedelta(days=3)) == []


def test_a_request_that_is_late_is_an_error_until_it_is_verified(monitored: Monitored) -> None:
    monitored.look(DUE_AT - timedelta(days=1))

    late = DUE_AT + timedelta(minutes=1)
    (alert,) = monitored.look(late)
    assert alert.title == "request R-1 is late: it was due by 2026-12-10"
    assert alert.severity == "error"
    assert monitored.look(late + timedelta(hours=1)) == []

    monitored.dagster.change(state="verified")
    over = monitored.look(late + timedelta(hours=2))
    assert sorted(alert.title for alert in over) == [
        "Resolved: request R-1 is due by 2026-12-10 12:00:00 UTC",
        f"Resolved: {alert.title}",
    ]
    assert {alert.lines[0] for alert in over} == {"Request R-1 is verified."}


def test_a_late_exception_names_the_places(monitored: Monitored) -> None:
    elsewhere = Unreachable("event logs of Dagster")
    monitored.dagster.change(state="exception", unreachable=(elsewhere,))
    monitored.look(DUE_AT)

    (alert,) = monitored.look(DUE_AT + timedelta(minutes=1))

    assert "event logs of Dagster: its operator has to erase it." in alert.lines
    assert "Next: lakehouse erase --request R-1 --elsewhere-done" in alert.lines


@pytest.mark.long
def test_a_proof_that_fails_is_reported_until_one_holds(
    monitored: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(erasure_steps, "scrub_places", lambda *_, **__: ())
        assert not monitored.dagster.run().success
    monitored.dagster.change(due_at=datetime(2999, 1, 1, tzinfo=UTC))

    (alert,) = monitored.look(datetime.now(UTC))

    assert alert.title == "request R-1 could not be completed by its last run"
    assert "Request R-1 is logically_deleted, and could not be proved" in alert.lines[0]
    assert HERS not in str(alert) and ANNA not in str(alert)

    assert monitored.dagster.run().success
    assert monitored.titles(datetime.now(UTC)) == [f"Resolved: {alert.title}"]


def test_a_run_that_fails_is_reported_once(
    monitored: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitored.dagster.change(due_at=datetime(2999, 1, 1, tzinfo=UTC))
    error = LakehouseError("The disk is full.", next_step="Free some.")
    monitored.fail(monkeypatch, error)
    (alert,) = monitored.look(datetime.now(UTC))

    run_id = monitored.dagster.instance.get_runs(limit=1)[0].run_id
    assert alert.title == "request R-1 could not be completed by its last run"
    assert alert.lines[0] == "LakehouseError: The disk is full. Free some."
    assert any(line.endswith(f"/runs/{run_id}") for line in alert.lines)
    monitored.fail(monkeypatch, error)
    assert monitored.look(datetime.now(UTC)) == []


def test_a_run_whose_process_died_counts_as_failed(monitored: Monitored) -> None:
    dagster = monitored.dagster
    dagster.change(due_at=datetime(2999, 1, 1, tzinfo=UTC))
    run_id = dagster.add_run(dg.DagsterRunStatus.STARTED)
    run = dagster.instance.get_run_by_id(run_id)
    assert run is not None
    dagster.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")

    (alert,) = monitored.look(datetime.now(UTC))
    assert alert.title == "request R-1 could not be completed by its last run"
    assert alert.lines[0] == "Its run ended without a reason."
