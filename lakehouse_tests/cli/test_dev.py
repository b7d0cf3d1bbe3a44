"""One `lakehouse dev` for all that may be asked of it one after the other, since each start
takes half a minute.

Commands beside it, files that land, a run and a Spark that are killed, and the UI in a real
browser. Each test has fruits and files of its own, and can be run alone.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from lakehouse.alerts.sinks import read_alerts
from lakehouse.cli.project.doctor_checks import findings
from lakehouse_tests.browser import find_browser, open_browser, take_picture
from lakehouse_tests.cli.commands import (
    answers,
    command_of,
    free_port,
    java_below,
    processes_below,
)
from lakehouse_tests.cli.live import SECONDS, Live
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.processes import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FILES = 50
TAKERS = 2
"""Those that are launched have a run each; the command and the sensor may find nothing left."""
SERVERS = 4
"""Spark, the webserver, the daemon and the code server."""
LAYERS = ("bronze", "silver", "gold")
EXPANDED = ",".join(f"global@global:{layer}" for layer in LAYERS)
SELECTED = quote(" or ".join(f'group:"{layer}"' for layer in LAYERS), safe="")
FAILING = "excluded_fruit_in_any_spelling"
CLEAN = "silver.bnpl_transactions_clean"
SIZE = {"width": 1600, "height": 1000}
SCALE = 0.8
"""Pixels of a picture for each of the page."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A lakehouse that runs."""
    with Live(settings_at(tmp_path_factory.mktemp("dev") / "home")) as live:
        live.start()
        _end_warm_up(live)
        yield live


def _end_warm_up(live: Live) -> None:
    """Save a minute of CPU: it makes the first run quicker and changes nothing else."""
    for pid in processes_below(live.dev.process.pid):
        if "lakehouse.cli.dev_processes.warm_up" in command_of(pid):
            os.kill(pid, signal.SIGTERM)


@pytest.fixture(scope="module")
def demo(live: Live) -> None:
    """What `lakehouse demo` leaves, for people to see.

    A sensor may be quicker with a file than the command, whose run has no results of checks then.
    """
    find_browser()
    ran = live.command("demo")
    assert ran.status(SECONDS) == 0, f"{ran.said}\n{live.dev.said}"
    # It fails where one of the other tests left something that it finds.
    live.command("check").status(SECONDS)
    live.wait_for_runs()


@pytest.fixture
def page() -> "Iterator[Page]":
    """A page of a headless Chromium."""
    with open_browser() as browser:
        page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE)  # type: ignore[arg-type]
        page.set_default_timeout(SECONDS * 1000)
        yield page


@pytest.mark.scenario
def test_it_says_where_it_is_and_commands_beside_it_start_no_jvm(live: Live) -> None:
    home = live.settings.home
    wait_for(
        lambda: f"is open at http://127.0.0.1:{live.port}, on {home}" in live.dev.said,
        "the address",
        SECONDS,
    )
    known = home / "spark-server.json"
    assert known.stat().st_mode & 0o777 == 0o600
    below = [live.dev.process.pid, *processes_below(live.dev.process.pid)]
    assert not any(json.loads(known.read_text())["token"] in command_of(pid) for pid in below)
    (temporary,) = (home / "tmp").glob("*-server")
    assert temporary.stat().st_mode & 0o777 == 0o700
    assert {"blockmgr", "spark"} <= {path.name.split("-")[0] for path in temporary.iterdir()}
    assert len(processes_below(live.dev.process.pid)) >= SERVERS
    assert next(finding for finding in findings(live.settings) if finding.name == "alerts").ok

    asked = live.command("sql", "SELECT count(*) AS n FROM range(3)")
    wait_for(
        lambda: not asked.is_alive or java_below(asked.process.pid),
        "the end of the command, or a JVM of its own",
    )
    assert not java_below(asked.process.pid)
    assert asked.status(SECONDS) == 0, asked.said


@pytest.mark.scenario
def test_a_second_one_on_the_same_home_is_rejected(live: Live) -> None:
    second = live.command("dev", "--port", str(free_port()))
    assert second.status(SECONDS) == 2
    assert "runs already on" in second.said


@pytest.mark.scenario
def test_a_delivered_file_is_ingested(live: Live) -> None:
    live.drop("delivered.csv", "1,Quince,false")
    live.wait_for_fruits("Quince")
    live.wait_for_an_empty_inbox()
    live.wait_for_runs()


def test_each_row_is_there_once_whoever_ingests(live: Live) -> None:
    """The sensor, two runs of the UI and a command compete for fifty files."""
    before = len(live.statuses())
    for number in range(FILES):
        live.drop(
            f"whoever-{number}.csv", f"{number},Fruit {number},false", f"{number},Common,false"
        )
    for _ in range(2):
        live.launch("ingest_fruits")
    command = live.command("ingest", "fruits")
    assert command.status() == 0, command.said
    live.wait_for_fruits("Common", *(f"Fruit {number}" for number in range(FILES)))
    live.wait_for_an_empty_inbox()
    live.wait_for_runs()
    runs = live.statuses()[before:]
    assert set(runs) == {"SUCCESS"}
    assert len(runs) >= TAKERS
    landed = [
        row
        for row in live.rows("bronze.raw_fruits", "_source_file", "_source_row")
        if "whoever" in row[0]
    ]
    assert landed == sorted(
        (f"whoever-{number}.csv", row) for number in range(FILES) for row in (1, 2)
    )
    found = dict(live.rows("silver.fruits", "fruit", "id"))
    assert found["Common"] == FILES - 1, "the last file wins"
    assert all(found[f"Fruit {number}"] == number for number in range(FILES))


def test_a_killed_run_and_a_killed_spark_lose_nothing_and_people_are_told(live: Live) -> None:
    live.drop("killed-1.csv", "1,Apple,false", "2,Pear,false")
    live.wait_for_fruits("Apple", "Pear")
    wait_for(lambda: live.worker() is None, "the end of the first run", SECONDS)
    if sys.platform == "linux":
        # It started as a fork of the run server.
        assert (live.settings.dagster_home / "run-server").exists()

    live.drop("killed-2.csv", "3,Plum,false", "4,Pear,true")
    os.kill(wait_for(live.worker, "a run", SECONDS), signal.SIGKILL)
    live.wait_for_fruits("Plum")

    live.drop("killed-3.csv", "5,Fig,false")
    spark, *_ = java_below(live.dev.process.pid)
    os.kill(spark, signal.SIGKILL)
    # Where Spark is back before the sensor looks, both are told at once.
    wait_for(lambda: titles(live)[:1] == ["Spark died"], "that people are told", SECONDS)
    assert answers(live.port, live.dev)
    live.drop("killed-4.csv", "6,Kiwi,true")
    live.wait_for_fruits("Fig", "Kiwi")
    wait_for(
        lambda: titles(live) == ["Spark died", "Resolved: Spark died"],
        "that it is over",
        SECONDS,
    )
    told = next(alert for alert in read_alerts(live.settings) if alert.title == "Spark died")
    assert "killed" in told.text
    assert "It is started again at" in live.dev.said
    assert "The Spark server is back" in live.dev.said
    another, *_ = java_below(live.dev.process.pid)
    assert another != spark

    landed = [
        row
        for row in live.rows("bronze.raw_fruits", "id", "_source_file")
        if "killed" in row[1]
    ]
    assert [number for number, _ in landed] == [f"{number}" for number in range(1, 7)]
    fruits = {"Apple": 1, "Fig": 5, "Kiwi": 6, "Pear": 4, "Plum": 3}
    assert fruits.items() <= dict(live.rows("silver.fruits", "fruit", "id")).items()
    live.wait_for_an_empty_inbox()
    assert "FAILURE" in live.statuses()


def titles(live: Live) -> list[str]:
    return [alert.title for alert in read_alerts(live.settings) if "Spark" in alert.title]


@pytest.mark.usefixtures("demo")
def test_people_see_a_partitioned_table_and_its_plots(live, page, tmp_path):
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"http://127.0.0.1:{live.port}/assets/{CLEAN.replace('.', '/')}")
    page.get_by_text("6,136", exact=True).first.wait_for()
    page.get_by_text("personal", exact=True).first.wait_for()
    take_picture(page, "partitioned-table", tmp_path)

    page.get_by_text("Plots", exact=True).click()
    # The newest partitions of the definition are later than the sample files.
    page.locator("button").filter(has_text="Events").click()
    page.get_by_text("dagster/partition_row_count").first.wait_for()
    page.locator("canvas").nth(3).wait_for()
    page.get_by_text("Metadata", exact=True).scroll_into_view_if_needed()
    take_picture(page, "plots", tmp_path)


@pytest.mark.usefixtures("demo")
def test_people_see_lineage_materializations_and_checks(live, page, tmp_path):
    url = f"http://127.0.0.1:{live.port}"

    # The layers and the quarantines, then the tables of the layers: an edge for each that is
    # computed from another.
    edges = page.locator("svg path[marker-end]")
    page.set_viewport_size({"width": 1400, "height": 1140})
    for address, count in (
        (url + "/asset-groups", 3),
        (f"{url}/asset-groups~{SELECTED}/?expanded={EXPANDED}", 4),
    ):
        page.goto(address)
        edges.nth(count - 1).wait_for(state="attached")
        assert edges.count() == count
    for layer in LAYERS:
        assert page.get_by_text(layer, exact=True).count()
    page.get_by_text("Hide navigation").click()
    page.get_by_text("Materializing").first.wait_for(state="hidden")
    take_picture(page, "lineage", tmp_path)

    live.drop("fruit_4.csv", "156,Medlar,false")
    live.wait_for_fruits("Medlar")
    live.wait_for_runs()
    before = live.statuses().count("FAILURE")
    live.drop("fruit_5.csv", "157,banana,false")
    wait_for(lambda: live.statuses().count("FAILURE") > before, "the refusal", SECONDS)
    live.wait_for_runs()
    page.set_viewport_size(SIZE)  # type: ignore[arg-type]
    runs = len(live.statuses())
    page.goto(f"{url}/assets/bronze/raw_fruits")
    page.get_by_role("button", name="Materialize").first.click()
    wait_for(lambda: len(live.statuses()) > runs, "the run that the button starts", SECONDS)
    wait_for(lambda: live.statuses()[-1] == "SUCCESS", "its end", SECONDS)

    page.goto(f"{url}/assets/silver/fruits?view=checks")
    page.get_by_text(FAILING).first.click()
    page.get_by_text(
        "no spelling of a fruit that is left out remains: 1 of 1 rows"
    ).first.wait_for()
    page.get_by_text("failed_rows").first.wait_for()
    assert page.get_by_text("banana").count()
    assert page.get_by_text("refused_").count()
    take_picture(page, "check", tmp_path)


@pytest.mark.usefixtures("demo")
def test_people_see_on_the_landing_page_what_a_command_ran(live, page, tmp_path):
    page.set_viewport_size({"width": 1600, "height": 640})
    page.goto(f"http://127.0.0.1:{live.port}")
    page.wait_for_url("**/overview/activity/timeline")
    page.get_by_text("1hr", exact=True).click()
    page.get_by_text("Jobless asset materializations").first.wait_for()
    take_picture(page, "landing-page", tmp_path)


@pytest.mark.usefixtures("demo")
def test_people_see_the_site_that_a_command_makes(live, page, tmp_path):
    site = tmp_path / "site"
    assert live.command("docs", "--out", str(site)).status(SECONDS) == 0
    page.goto((site / "index.html").as_uri())
    row = page.locator("tr", has=page.get_by_role("link", name=CLEAN, exact=True))
    assert {"6,136", "145"} <= set(row.inner_text().split())
    take_picture(page, "site", tmp_path)

    row.get_by_role("link", name=CLEAN, exact=True).click()
    assert page.get_by_role("heading", level=1).inner_text() == CLEAN
    page.locator("#lineage").evaluate("heading => heading.scrollIntoView()")
    take_picture(page, "site-table", tmp_path)


@pytest.mark.scenario
def test_ctrl_c_ends_it_and_all_that_it_started(live: Live) -> None:
    """The last one of this file: no test can follow."""
    assert live.end(signal.SIGINT) == 130, live.dev.said
