"""Alerts of a running lakehouse: the webhook is down for a while, and `dev` is killed."""

import re
import signal
from urllib.parse import urlsplit

import pytest
import requests

from lakehouse.alerts.alerts_sensor import read_heartbeat
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse_tests.alerts.receiver import Receiver, receiving
from lakehouse_tests.cli.commands import answers
from lakehouse_tests.cli.live import SECONDS, Live
from lakehouse_tests.processes import KILLED, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(600)]

IN_SECONDS = 25
"""Less than the timeouts for Dagster and Spark to exit."""
WARNS = "silver.fruits: 1 row in quarantine"
HELD = "silver.fruits is blocked by rule excluded_fruit_in_any_spelling"


def test_what_breaks_is_told_once_whatever_is_down_and_when_it_is_over(settings):
    """The first `dev` is killed; a script starts and stops the second."""
    with Live(settings) as live, receiving() as receiver, receiving() as watcher:
        env = {
            "LAKEHOUSE_ALERT_URLS": receiver.url,
            "LAKEHOUSE_HEARTBEAT_URL": f"http://127.0.0.1:{watcher.port}/ping",
        }
        live.start(**env)
        live.drop("1.csv", "1,Apple,false", "2,Pear,false")
        live.wait_for_fruits("Apple", "Pear")
        live.drop("2.csv", "x,Fig,false", "3,Plum,false")
        wait_for_titles(receiver, WARNS)
        live.wait_for_fruits("Plum")

        main = Catalog.of(settings).load("silver.fruits").current_snapshot()
        receiver.is_down = True
        live.drop("3.csv", "4,banana,false")
        wait_for(lambda: receiver.refused > 0, "a message that is not taken", SECONDS)
        # A table is held while its run still goes on: killed now, that run would be told as
        # failed too.
        live.wait_for_runs()
        assert live.end(signal.SIGKILL) == KILLED
        receiver.is_down = False
        child = live.start(live.port, by_a_script=True, **env)
        wait_for_titles(receiver, WARNS, HELD)
        assert Catalog.of(settings).load("silver.fruits").current_snapshot() == main

        every_link_answers(live, receiver)
        command = live.command("reject", "3.csv", "--feed", "fruits", "--why", "by mistake")
        assert command.status() == 0, command.said
        # Rows went from bronze, and all of it is read anew: the Fig of the second file is
        # known.
        wait_for_titles(receiver, WARNS, HELD, f"Resolved: {HELD}")
        live.drop("4.csv", "5,Kiwi,true")
        live.wait_for_fruits("Kiwi")
        command = live.command(
            "reject", "2.csv", "--feed", "fruits", "--why", "nobody corrects it"
        )
        assert command.status() == 0, command.said
        wait_for_titles(receiver, WARNS, HELD, f"Resolved: {HELD}", f"Resolved: {WARNS}")
        beats = len(watcher.taken)
        wait_for(lambda: len(watcher.taken) > beats + 1, "two more signs of life", SECONDS)
        assert receiver.titles == [WARNS, HELD, f"Resolved: {HELD}", f"Resolved: {WARNS}"]
        assert {taken.path for taken in watcher.taken} == {"/ping"}
        assert read_heartbeat(settings) is not None
        assert answers(live.port, child)
        assert live.end(signal.SIGTERM, seconds=IN_SECONDS) == 130, child.said


def wait_for_titles(receiver: Receiver, *titles: str) -> None:
    """Wait until so many messages came: they are these."""
    wait_for(lambda: len(receiver.titles) >= len(titles), f"{titles[-1]!r}", SECONDS)
    assert receiver.titles == list(titles)


def every_link_answers(live: Live, receiver: Receiver) -> None:
    """Each page is there, and what it is to show too: the UI answers any path with a page."""
    links = {
        link
        for taken in receiver.taken
        for link in re.findall(r"https?://\S+", taken.body["message"])
    }
    assert {urlsplit(link).port for link in links} == {live.port}
    paths = {urlsplit(link).path for link in links}
    assert len(paths) == 3
    for link in links:
        assert requests.get(link, timeout=60).status_code == 200
    for path in paths:
        _, kind, *rest = path.split("/")
        if kind == "runs":
            found = live.ask(
                "query($id: ID!) { runOrError(runId: $id) { __typename } }", id=rest[0]
            )
            assert found == {"runOrError": {"__typename": "Run"}}
        else:
            asked = {"path": rest}
            found = live.ask(
                "query($key: AssetKeyInput!) { assetOrError(assetKey: $key) { __typename } }",
                key=asked,
            )
            assert (kind, found) == ("assets", {"assetOrError": {"__typename": "Asset"}})
