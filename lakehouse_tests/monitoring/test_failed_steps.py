"""A step that fails is an alert at once, and names its cause."""

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.test_utils import create_run_for_test
from dagster._utils.error import SerializableErrorInfo

from lakehouse_tests.monitoring.watch import Watch


@pytest.mark.long
def test_a_failed_step_is_one_alert_while_its_run_continues(watch: Watch) -> None:
    during_the_run = []

    @dg.asset
    def a_fails() -> None:
        raise ValueError

    @dg.asset
    def b_continues() -> None:
        during_the_run.extend(watch.look())
        assert watch.look() == []

    ran = dg.materialize([a_fails, b_continues], instance=watch.instance, raise_on_error=False)

    assert not ran.success
    assert [alert.key.partition(" ")[0] for alert in during_the_run] == ["failed"]
    assert during_the_run[0].lines[0].startswith("ValueError")
    assert watch.look() == []


def test_a_run_that_never_reached_a_step_names_its_cause(watch: Watch) -> None:
    run = create_run_for_test(watch.instance, status=dg.DagsterRunStatus.STARTED)
    error = SerializableErrorInfo("no check r1\n", [], "DagsterInvalidSubsetError")
    watch.instance.report_engine_event("Cannot load.", run, EngineEventData.engine_error(error))
    watch.instance.report_run_failed(run)

    (alert,) = watch.look()

    assert alert.lines[0].startswith("DagsterInvalidSubsetError")


def test_a_run_without_an_error_names_no_execution_context(watch: Watch) -> None:
    run = create_run_for_test(watch.instance, status=dg.DagsterRunStatus.STARTED)
    watch.instance.report_engine_event("The process exited with code -9.", run)
    watch.instance.report_run_failed(run)

    (alert,) = watch.look()

    assert alert.lines[0] == "The process exited with code -9."
