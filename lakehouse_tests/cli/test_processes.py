"""Whole commands as processes of their own: how many JVMs they start, what a terminal sees, and how they end."""

import json
import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from lakehouse.monitoring.record import read_alerts
from lakehouse.resources import jvm
from lakehouse.resources.doctor import Finding, findings
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import (
    LAKEHOUSE,
    answers,
    free_port,
    is_alive,
    java_below,
    processes_below,
)
from lakehouse_tests.processes import start_command, wait_for

pytestmark = pytest.mark.e2e

IN_SECONDS = 25
"""Less than it takes to wait in vain for Dagster, and then for Spark, to end when they are asked to."""


@pytest.fixture
def counting_java(tmp_path, settings) -> Path:
    """A JAVA_HOME whose `java` notes its arguments at each start in the file `starts`."""
    real = jvm.find(settings)
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    shutil.copy(real.home / "release", home)
    starter = home / "bin" / "java"
    starter.write_text(f'#!/bin/sh\necho "$*" >> "{home}/starts"\nexec "{real.java}" "$@"\n', encoding="utf-8")
    starter.chmod(0o755)
    return home


@pytest.fixture
def without_network() -> list[str]:
    """What a command is put behind to be without a network, where this machine lets us."""
    lone = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
    allowed = shutil.which("unshare") and shutil.which("ip") and subprocess.run([*lone, "true"], check=False)
    return lone if allowed and allowed.returncode == 0 else []


def snapshots(home: Path) -> dict[str, list[int]]:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lakehouse", uri=f"sqlite:///{home}/catalog.db")
    names = ("bronze.raw_fruits", "silver.fruits")
    return {name: [found.snapshot_id for found in catalog.load_table(name).snapshots()] for name in names}


def status(home: Path) -> dict[str, dict]:
    done = subprocess.run(
        [LAKEHOUSE, "status", "--format", "json"],
        env=os.environ | {"LAKEHOUSE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {found["table"]: found for found in json.loads(done.stdout)}


def test_what_spark_says_is_not_shown(home):
    done = subprocess.run(
        [LAKEHOUSE, "sql", "SELECT 1 AS one; SELEC 2"],
        env=os.environ | {"LAKEHOUSE_HOME": str(home), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == "one\n---\n  1\n(1 row)\n"
    said = [line for line in done.stderr.splitlines() if not line.endswith(" …")]
    assert said == [
        "lakehouse: statement 2 of 2: [PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. (line 1, pos 0)"
    ]


def test_ctrl_c_ends_a_query_with_one_line_and_leaves_no_process(home, started):
    child = started("sql", "SELECT count(*) FROM range(1000000) AS a CROSS JOIN range(1000000) AS b")
    wait_for(lambda: "Running SQL" in child.said, "the query")
    java = java_below(child.process.pid)
    assert java
    child.process.send_signal(signal.SIGINT)
    assert child.status(60) == 130
    said = [line for line in child.said.splitlines() if line and not line.endswith(" …")]
    assert said == ["lakehouse: stopped. What was published stays; the same command again does what is left."]
    wait_for(lambda: not any(is_alive(pid) for pid in java), "the end of the JVM")


def test_the_demo_is_stopped_then_takes_one_jvm_and_again_no_network_and_changes_nothing(
    home, started, counting_java, without_network
):
    """Stopped by Ctrl-C it says one line, and the next one does it all."""
    child = started("demo")
    wait_for(lambda: (home / "warehouse" / "bronze").exists(), "the first table")
    child.process.send_signal(signal.SIGINT)
    assert child.status(60) == 130, child.said
    said = [line for line in child.said.splitlines() if line and not line.endswith(" …")]
    assert said[-1] == "lakehouse: stopped. What was published stays; the same command again does what is left."
    assert "Traceback" not in child.said

    env = {"JAVA_HOME": str(counting_java)}
    first = start_command([LAKEHOUSE, "demo"], home, env=env)
    assert first.status() == 0, first.said
    # Spark's own launcher asks a small JVM for a moment how to start the real one.
    starts = (counting_java / "starts").read_text().splitlines()
    assert len([start for start in starts if "org.apache.spark.launcher.Main" not in start]) == 1
    before = snapshots(home)

    second = start_command([*without_network, LAKEHOUSE, "demo"], home, env=env)
    assert second.status() == 0, second.said
    assert snapshots(home) == before
    found = status(home)
    assert (found["bronze.raw_fruits"]["rows"], found["silver.fruits"]["rows"]) == (180, 155)
    assert found["silver.fruits"]["checks_failed"] == []
    assert len(list((home / "archive" / "fruits").rglob("*.csv"))) == 4
    assert not list((home / "inbox" / "fruits").iterdir())


def test_dev_serves_commands_and_starts_a_spark_again_that_was_killed_until_ctrl_c(home, settings, started):
    """One `dev` for all that may be asked of it one after the other: each start takes half a minute."""
    port = free_port()
    child = started("dev", "--port", str(port))
    wait_for(lambda: f"is open at http://127.0.0.1:{port}, on {home}" in child.said, "the UI", 180)
    assert answers(port, child)
    assert (home / "spark-server.json").stat().st_mode & 0o777 == 0o600
    assert line_of(settings, "alerts").ok

    asked = started("sql", "SELECT count(*) AS n FROM range(3)")
    wait_for(lambda: not asked.is_alive or java_below(asked.process.pid), "the end of the command, or a JVM of its own")
    assert not java_below(asked.process.pid)
    assert asked.status(60) == 0, asked.said

    second = started("dev", "--port", str(free_port()))
    assert second.status(60) == 2
    assert "runs already on" in second.said

    (spark, *_) = java_below(child.process.pid)
    os.kill(spark, signal.SIGKILL)
    wait_for(lambda: titles(settings) == ["Spark died"], "that people are told", 60)
    assert answers(port, child)
    wait_for(lambda: "The Spark server is back" in child.said, "another Spark", 180)
    wait_for(lambda: titles(settings) == ["Spark died", "Over: Spark died"], "that it is over", 60)
    told = next(alert for alert in read_alerts(settings))
    assert "killed, as by lack of memory" in told.text
    assert "It is started again at" in child.said
    (another, *_) = java_below(child.process.pid)
    assert another != spark

    below = processes_below(child.process.pid)
    assert len(below) >= 4, "the Spark server, the webserver, the daemon and the code server"
    child.process.send_signal(signal.SIGINT)
    assert child.status(60) == 130, child.said
    wait_for(lambda: not any(is_alive(pid) for pid in below), "the end of its children")


def titles(settings: Settings) -> list[str]:
    return [alert.title for alert in read_alerts(settings) if "Spark" in alert.title]


def line_of(settings: Settings, name: str) -> Finding:
    return next(finding for finding in findings(settings) if finding.name == name)


def test_dev_that_a_script_started_ends_in_seconds_when_it_is_told_to(home):
    """What is started in the background of a script ignores Ctrl-C, and so did all that `dev` started."""
    port = free_port()
    child = start_command(["sh", "-c", f'trap "" INT; exec "{LAKEHOUSE}" dev --port {port}'], home)
    try:
        wait_for(lambda: answers(port, child), "the UI", 180)
        below = processes_below(child.process.pid)
        child.process.send_signal(signal.SIGTERM)
        assert child.status(IN_SECONDS) == 130, child.said
        wait_for(lambda: not any(is_alive(pid) for pid in below), "the end of its children", 5)
    finally:
        child.kill()


def test_dev_that_is_killed_leaves_no_process(started):
    port = free_port()
    child = started("dev", "--port", str(port))
    wait_for(lambda: answers(port, child), "the UI", 180)
    below = processes_below(child.process.pid)
    child.process.send_signal(signal.SIGKILL)
    assert child.status(60) == -9, child.said
    wait_for(lambda: not any(is_alive(pid) for pid in below), "the end of its children")


def test_dev_refuses_a_port_that_is_taken(started):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        child = started("dev", "--port", str(taken.getsockname()[1]))
        assert child.status(60) == 2
    assert "--port" in child.said
