"""Runs whose process is gone are told from those that work, and failed."""

import os
import subprocess
import sys
from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.spark.processes import Process, started_at


@pytest.fixture
def dead() -> Process:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process(Process.current().host, child.pid, started_at(child.pid))
    child.communicate(b"\n")
    return process


def started(instance: dg.DagsterInstance, tags: dict[str, str], **parts) -> dg.DagsterRun:
    @dg.job
    def work():
        pass

    run = instance.create_run_for_job(
        work, tags=tags, status=dg.DagsterRunStatus.STARTED, **parts
    )
    return instance.get_run_by_id(run.run_id)


def test_a_later_process_of_the_same_number_is_another():
    assert not replace(Process.current(), started_at=1.0).is_alive


def test_a_process_that_ended_and_that_nobody_asked_how_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = Process(Process.current().host, child.pid, started_at(child.pid))
        child.stdin.close()
        # Leaves it as it is, so that its number is not free yet.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not process.is_alive


def test_a_run_whose_process_is_gone_fails_and_says_why(instance, dead):
    run = started(instance, dead.tags)

    assert [found.run_id for found in fail_orphaned_runs(instance)] == [run.run_id]
    assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.FAILURE
    (event,) = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert f"(pid {dead.pid}) is gone" in event.message


def test_a_run_that_works_is_left_alone(instance):
    run = started(instance, Process.current().tags)

    assert fail_orphaned_runs(instance) == []
    assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.STARTED


def test_a_run_of_another_host_is_left_alone(instance, dead):
    started(instance, replace(dead, host="elsewhere").tags)

    assert fail_orphaned_runs(instance) == []


def test_a_run_of_the_ui_is_known_by_the_process_that_dagster_noted(instance, dead):
    run = started(instance, {})
    # As Dagster's launcher does.
    instance.report_engine_event(
        "Started process for run.", run, EngineEventData.in_process(dead.pid)
    )

    assert [found.run_id for found in fail_orphaned_runs(instance)] == [run.run_id]


def test_a_run_executed_again_does_not_die_of_the_tags_of_the_first(instance, dead):
    first = started(instance, dead.tags)
    fail_orphaned_runs(instance)
    started(instance, dead.tags, parent_run_id=first.run_id, root_run_id=first.run_id)

    assert fail_orphaned_runs(instance) == []
