"""The job that carries a request on, and the sensor that asks for it: by its id alone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse.errors import LakehouseError, TableBusy
from lakehouse.orchestration.runs.erasure_runs import REQUEST_TAG
from lakehouse.privacy import erasure_job, erasure_steps
from lakehouse.privacy.erasure_job import run_config
from lakehouse.privacy.folder import erase_lock
from lakehouse.privacy.requests import Unreachable, read_request
from lakehouse.storage.file_lock import brief_lock
from lakehouse_tests.privacy.an_erasure import ANNA, ANNA_BEFORE, HERS, NAMED, Home
from lakehouse_tests.privacy.erasure_in_dagster import (
    LONG_AGO,
    InDagster,
    error_of,
    fail_with,
    in_dagster,
    let_erasures_do,
    metadata_of,
)
from lakehouse_tests.privacy.small_lakehouse import MAILS, ORDERS, PROFILES, RAW

pytestmark = pytest.mark.unit
STARTED = dg.DagsterRunStatus.STARTED


@pytest.fixture
def dagster(there: Home) -> Iterator[InDagster]:
    """The job and the sensor, on a home that holds Anna."""
    with in_dagster(there) as found:
        yield found


@pytest.mark.scenario
def test_what_dagster_keeps_of_a_run_holds_no_value(dagster: InDagster) -> None:
    dagster.home.lose_a_write()
    dagster.request()

    result = dagster.run()

    assert result.success
    told = str([*result.all_events, *dagster.instance.get_runs()])
    assert not [value for value in (ANNA, ANNA_BEFORE, HERS) if value in told]
    kept = dagster.home.files_with(ANNA, ANNA_BEFORE, HERS)
    assert not [file for file in kept if not file.startswith("warehouse/")]


@pytest.mark.long
def test_the_output_says_how_far_a_request_is(dagster: InDagster) -> None:
    dagster.home.lose_a_write()
    dagster.request()

    shown = metadata_of(dagster.run())

    request = read_request(dagster.home.settings, "R-1")
    assert request.physical_due_at is not None
    assert shown["erasure/request"] == "R-1"
    assert shown["erasure/state"] == "pending_physical"
    assert shown["erasure/due_at"] == request.due_at.isoformat()
    assert shown["erasure/physical_due_at"] == request.physical_due_at.isoformat()
    assert shown["erasure/rows"] == {
        RAW.name: {"main": 1},
        ORDERS.name: {"main": 1, "month_end": 1},
        PROFILES.name: {"main": 1},
        MAILS.name: {"main": 1},
    }
    assert shown["erasure/rewritten_files"] == 2
    assert shown["erasure/places"]["logs/app.log"] == "erased"


@pytest.mark.long
def test_what_cannot_be_proved_fails_and_names_the_places(
    dagster: InDagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster.request()
    monkeypatch.setattr(erasure_steps, "scrub_places", lambda *_, **__: ())

    result = dagster.run()

    assert not result.success
    assert "Request R-1 is logically_deleted, and could not be proved" in error_of(result)
    shown = metadata_of(result)
    assert [finding for finding in shown["erasure/findings"] if "logs/app.log" in finding]
    assert HERS not in str(shown)


def test_an_error_that_may_quote_a_value_is_told_by_its_kind(
    dagster: InDagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        try:
            raise ValueError(f"cannot cast {HERS}")
        except ValueError as error:
            raise TypeError(f"no type of {ANNA}") from error

    dagster.request()
    let_erasures_do(monkeypatch, fail)

    told = error_of(dagster.run())

    assert "Request R-1 could not be continued: TypeError." in told
    assert HERS not in told and ANNA not in told


def test_at_once_is_denied_while_the_job_runs(
    dagster: InDagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def look() -> None:
        with pytest.raises(TableBusy) as raised:
            dagster.home.erase(*NAMED, request="R-2", now=True)
        refused.append(str(raised.value))

    dagster.request()
    let_erasures_do(monkeypatch, look)
    result = dagster.run()

    assert result.success
    assert f"{result.run_id} of erase_people" in refused[0]


def test_without_a_request_nothing_is_opened(dagster: InDagster) -> None:
    assert "No request to erase people is due" in dagster.reason()
    assert not (dagster.home.settings.home / "privacy" / "requests").exists()


def test_a_request_that_was_left_is_asked_for_by_its_id(dagster: InDagster) -> None:
    dagster.request()

    asked = dagster.ask()

    assert isinstance(asked, dg.RunRequest)
    assert asked.run_config == run_config("R-1")
    assert asked.tags == {REQUEST_TAG: "R-1"}
    assert asked == dagster.ask()


def test_a_pending_request_is_asked_for_once_it_is_due(dagster: InDagster) -> None:
    due_at = datetime(2999, 1, 2, 3, 4, tzinfo=UTC)
    dagster.request()
    dagster.change(state="pending_physical", physical_due_at=due_at)
    assert "is due" in dagster.reason()

    dagster.change(physical_due_at=LONG_AGO)
    assert isinstance(dagster.ask(), dg.RunRequest)


@pytest.mark.parametrize("state", ["verified", "not_found", "exception"])
def test_what_is_done_or_waits_for_a_person_is_not_asked_for(
    dagster: InDagster, state: str
) -> None:
    dagster.request()
    elsewhere = Unreachable("backups")
    dagster.change(state=state, unreachable=(elsewhere,) if state == "exception" else ())

    assert "is due" in dagster.reason()


def test_nothing_is_asked_for_while_a_process_erases(dagster: InDagster) -> None:
    dagster.request()
    with brief_lock(erase_lock(dagster.home.settings)):
        assert "A process erases people" in dagster.reason()

    assert isinstance(dagster.ask(), dg.RunRequest)


def test_one_run_at_a_time_is_asked_for(dagster: InDagster) -> None:
    dagster.request()
    run_id = dagster.add_run(STARTED, "R-2")

    assert f"Run {run_id[:8]} is active" in dagster.reason()


def test_a_run_that_failed_is_tried_again_a_day_later(
    dagster: InDagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster.request()
    let_erasures_do(monkeypatch, fail_with(LakehouseError("The disk is full.")))
    assert not dagster.run().success

    assert "retried a day after its last run" in dagster.reason()
    monkeypatch.setattr(erasure_job, "RETRY_AFTER", timedelta(0))
    assert isinstance(dagster.ask(), dg.RunRequest)
