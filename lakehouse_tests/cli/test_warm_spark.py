"""Restarts of a dead Spark server, with processes in place of Spark."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest

from lakehouse.cli.dev_processes import warm_spark
from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.warm_spark import WarmSpark, describe_exit
from lakehouse.orchestration.incident_reports import read_reports
from lakehouse.settings import Settings
from lakehouse.spark import spark_server
from lakehouse.spark.processes import Process
from lakehouse.spark.spark_folders import log_file
from lakehouse.spark.spark_server import SparkServer
from lakehouse_tests.processes import wait_for

pytestmark = pytest.mark.unit

WARMED_UP = "warmed up"
WARM_UP = ["echo", WARMED_UP]


@pytest.fixture
def warm(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[WarmSpark]:
    """One that has started a process; each ends at once, and nothing answers."""

    def start(
        _settings: Settings, like: SparkServer | None = None
    ) -> tuple["subprocess.Popen[bytes]", SparkServer]:
        child = subprocess.Popen(["sh", "-c", "kill -9 $$"], start_new_session=True)
        child.wait()
        return child, like or SparkServer(1, "T0ken", Process("here", child.pid, 0.0))

    monkeypatch.setattr(spark_server, "start", start)
    monkeypatch.setattr(spark_server, "wait_for", lambda *_: None)
    monkeypatch.setattr(warm_spark, "_WARM_UP_COMMAND", WARM_UP)
    settings.make_home()
    with Children() as children:
        yield WarmSpark(settings, children, said.append)
    said.clear()


said: list[str] = []


def test_a_spark_that_dies_is_started_again_after_pauses_that_grow(warm, settings, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(warm_spark.time, "monotonic", lambda: now)
    warm.start(_no_progress)
    pauses = []
    for _ in range(4):
        warm.look()
        retry_at = warm._restarts.retry_at
        assert retry_at is not None
        pauses.append(retry_at - now)
        now = retry_at
        warm.look()
    # The clock counts from the start of the machine, and loses digits by the difference.
    assert pauses == pytest.approx([5, 10, 20, 40])
    assert "exited (killed" in said[0]
    assert "did not start" in said[1]
    broken = [note for note in read_reports(settings) if not note.resolved]
    assert len(broken) == len(pauses)
    assert {note.report.title for note in broken} == {"Spark died"}


def test_it_is_over_when_it_answers(warm, settings, monkeypatch):
    warm.start(_no_progress)
    warm.look()
    monkeypatch.setattr(SparkServer, "answers", True)
    monkeypatch.setattr(
        spark_server, "start", lambda _, like: (subprocess.Popen(["sleep", "60"]), like)
    )
    warm._restarts.retry_at = 0.0
    warm.look()
    warm.look()
    assert said[-1] == "The Spark server is back."
    assert [note.resolved for note in read_reports(settings)][
        -1
    ] == "Spark was started again, and answers."


def test_one_that_starts_and_never_answers_is_ended_and_tried_again(warm, monkeypatch):
    warm.start(_no_progress)
    warm.look()
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    monkeypatch.setattr(spark_server, "start", lambda _, like: (child, like))
    monkeypatch.setattr(spark_server, "START_SECONDS", 0.0)
    warm._restarts.retry_at = 0.0
    warm.look()
    warm.look()
    assert child.poll() is not None
    assert "did not start (no answer in 0 s)" in said[-1]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-9, "LAKEHOUSE_SPARK_MEMORY to less"),
        (137, "LAKEHOUSE_SPARK_MEMORY to less"),
        (52, "LAKEHOUSE_SPARK_MEMORY to more"),
        (1, "exit status 1"),
    ],
)
def test_describe_exit(code: int, text: str) -> None:
    assert text in describe_exit(code)


def test_each_spark_that_answers_is_warmed_up_and_no_warm_up_outlives_its_end(
    settings: Settings, warm: WarmSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm.start(_no_progress)
    wait_for(lambda: WARMED_UP in log_file(settings).read_text(), "the warm-up")
    wait_for(lambda: warm.children.ended(warm_spark._WARM_UP) == 0, "its end")
    warm.look()
    assert warm.children.ended(warm_spark._WARM_UP) is None
    monkeypatch.setattr(warm_spark, "_WARM_UP_COMMAND", ["sleep", "60"])
    warm._warm_up()
    child, _ = warm.children._running[warm_spark._WARM_UP]
    warm.children.__exit__(None, None, None)
    assert child.returncode == -signal.SIGINT


def test_a_spark_whose_tasks_run_elsewhere_is_not_warmed_up_by_tables_of_this_machine(
    settings: Settings, warm: WarmSpark
) -> None:
    warm.settings = replace(settings, spark_master="spark://10.0.0.1:7077")
    warm.start(_no_progress)
    assert warm_spark._WARM_UP not in warm.children._running


def _no_progress(_: str):
    return nullcontext()
