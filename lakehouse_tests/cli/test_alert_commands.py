"""What was told as commands list and show it, whole where a program reads it, and what a person
says of it.
"""

import logging
from datetime import UTC, datetime

import pytest

from lakehouse.monitoring.alert_settings import read_routes
from lakehouse.monitoring.alert_state import read_state, write_state
from lakehouse.monitoring.dispatch import Dispatcher, enqueue_alerts
from lakehouse.monitoring.incidents import Firing, Observed
from lakehouse.monitoring.sinks import open_sinks
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit

MANY = 25
LOGGER = logging.getLogger("lakehouse.alerts")


@pytest.fixture
def told(settings: Settings) -> list[Alert]:
    """Checks of a table that failed, one message each."""
    now, titles = (
        datetime.now(UTC),
        [f"silver.fruits: check c{number:02} failed" for number in range(MANY)],
    )
    facts = tuple(
        Firing(title, "check", now, "error", title, ("1 of 2 rows break it.",))
        for title in titles
    )
    state = enqueue_alerts(
        read_state(settings), Observed(facts), now, read_routes(settings), lambda *_: ""
    )
    write_state(settings, state)
    Dispatcher(state, lambda known: write_state(settings, known), LOGGER).run(
        open_sinks(settings, (), LOGGER)
    )
    return [parcel.alert for parcel in state.queues["file"].parcels]


@pytest.mark.usefixtures("told")
def test_a_list_for_programs_is_whole_and_one_for_people_is_cut(lakehouse: Lakehouse) -> None:
    assert len(records(lakehouse("alerts", "--format", "json"))) == MANY
    assert len(records(lakehouse("alerts", "--open", "--format", "json"))) == MANY
    assert len(records(lakehouse("alerts", "--last", "3", "--format", "json"))) == 3
    for ran in (lakehouse("alerts"), lakehouse("alerts", "--open")):
        assert ran.out[-1] == "(20 of 25 alerts, --last 25 lists all; 25 incidents open)"
    assert lakehouse("alerts", "--last", "25").out[-1] == "(25 alerts; 25 incidents open)"


def test_one_alert_is_shown_to_a_program_as_a_whole(
    lakehouse: Lakehouse, told: list[Alert], settings: Settings
) -> None:
    found = records(lakehouse("alerts", told[0].alert_id, "--format", "json"))
    assert found == {**told[0].to_json(), "lakehouse": settings.title, "is_open": True}


def test_what_is_acknowledged_stays_open_and_has_a_reason(
    lakehouse: Lakehouse, told: list[Alert], settings: Settings
) -> None:
    ran = lakehouse(
        "alerts", "ack", told[0].alert_id, "--why", "the source is asked", "--by", "somebody"
    )
    assert (ran.code, ran.out) == (
        0,
        [
            f"{told[0].title}: acknowledged by somebody; it is not repeated, and a message"
            " says when it is resolved."
        ],
    )
    assert (
        read_state(settings).open[told[0].key].acknowledged == "somebody: the source is asked"
    )


@pytest.mark.parametrize("command", ["ack", "close"])
def test_a_placeholder_is_no_reason(
    lakehouse: Lakehouse, told: list[Alert], settings: Settings, command: str
) -> None:
    ran = lakehouse("alerts", command, told[0].alert_id, "--why", "…")
    assert (ran.code, "which only stands for a text; expected some words." in ran.err[0]) == (
        2,
        True,
    )
    incident = read_state(settings).open[told[0].key]
    assert incident.acknowledged == ""
