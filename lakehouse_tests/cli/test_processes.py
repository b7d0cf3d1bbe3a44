"""Commands as processes: number of JVMs, terminal output and exit."""

import json
import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.spark import jvm
from lakehouse_tests.cli.commands import LAKEHOUSE, is_alive, java_below, lines_of
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.processes import start_command, wait_for

pytestmark = pytest.mark.e2e


STOPPED = (
    "lakehouse: stopped. What was published stays; the same command again does what is left."
)


@pytest.fixture
def counting_java(tmp_path, settings) -> Path:
    """A JAVA_HOME whose `java` notes its arguments at each start in the file `starts`."""
    real = jvm.find(settings)
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    shutil.copy(real.home / "release", home)
    starter = home / "bin" / "java"
    starter.write_text(
        f'#!/bin/sh\necho "$*" >> "{home}/starts"\nexec "{real.java}" "$@"\n', encoding="utf-8"
    )
    starter.chmod(0o755)
    return home


@pytest.fixture
def without_network() -> list[str]:
    """What a command is put behind to be without a network, where this machine lets us."""
    lone = ["unshare", "--map-root-user", "--net", "sh", "-c"]
    lone.append('ip link set lo up && exec "$0" "$@"')
    allowed = (
        shutil.which("unshare")
        and shutil.which("ip")
        and subprocess.run([*lone, "true"], check=False)
    )
    return lone if allowed and allowed.returncode == 0 else []


def snapshots(home: Path) -> dict[str, list[int]]:
    catalog = Catalog.of(settings_at(home))
    return {
        name: [snapshot.snapshot_id for snapshot in catalog.load(name).snapshots()]
        for name in ("bronze.raw_fruits", "silver.fruits")
    }


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
        [LAKEHOUSE, "sql", "SELECT 1 AS one; SELECT 1 +"],
        env=os.environ | {"LAKEHOUSE_HOME": str(home), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == "one\n---\n  1\n(1 row)\n"
    said = [line for line in done.stderr.splitlines() if not line.endswith(" …")]
    assert said == [
        "lakehouse: statement 2 of 2: [PARSE_SYNTAX_ERROR] Syntax error at or near end of"
        " input. (line 1, pos 10)"
    ]


def test_ctrl_c_ends_a_query_with_one_line_and_leaves_no_process(home, started):
    child = started(
        "sql", "SELECT count(*) FROM range(1000000) AS a CROSS JOIN range(1000000) AS b"
    )
    wait_for(lambda: "Running SQL" in child.said, "the query")
    java = java_below(child.process.pid)
    assert java
    child.process.send_signal(signal.SIGINT)
    assert child.status(60) == 130
    assert lines_of(child) == [STOPPED]
    wait_for(lambda: not any(is_alive(pid) for pid in java), "the end of the JVM")


def test_the_demo_is_stopped_then_takes_one_jvm_and_again_no_network_and_changes_nothing(
    home, started, counting_java, without_network
):
    """Stopped by Ctrl-C it says one line, and the next one does it all."""
    child = started("demo")
    wait_for(lambda: (home / "warehouse" / "bronze").exists(), "the first table")
    child.process.send_signal(signal.SIGINT)
    assert child.status(60) == 130, child.said
    assert lines_of(child)[-1] == STOPPED
    assert "Traceback" not in child.said

    env = {"JAVA_HOME": str(counting_java)}
    first = start_command([LAKEHOUSE, "demo"], home, env=env)
    assert first.status() == 0, first.said
    # Spark's own launcher asks a small JVM for a moment how to start the real one.
    starts = (counting_java / "starts").read_text().splitlines()
    assert (
        len([start for start in starts if "org.apache.spark.launcher.Main" not in start]) == 1
    )
    before = snapshots(home)

    second = start_command([*without_network, LAKEHOUSE, "demo"], home, env=env)
    assert second.status() == 0, second.said
    assert snapshots(home) == before
    found = status(home)
    assert (found["bronze.raw_fruits"]["rows"], found["silver.fruits"]["rows"]) == (180, 155)
    assert found["silver.fruits"]["checks_failed"] == []
    assert len(list((home / "archive" / "fruits").rglob("*.csv"))) == 4
    assert not list((home / "inbox" / "fruits").iterdir())


@pytest.mark.scenario
def test_dev_rejects_a_port_that_is_taken(started):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        child = started("dev", "--port", str(taken.getsockname()[1]))
        assert child.status() == 2
    assert "--port" in child.said
