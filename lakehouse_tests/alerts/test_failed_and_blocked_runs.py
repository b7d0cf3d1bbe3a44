"""Incidents of runs: failed checks, steps and runs, and what resolves them."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.events import StepMaterializationData

from lakehouse.errors import LakehouseError
from lakehouse.orchestration.asset_keys import FEED_TAG, PATH_TAG
from lakehouse.orchestration.blocked_tables import STALE
from lakehouse_tests.alerts.watch import FEED, Watch

FRUITS = dg.AssetKey(["silver", "fruits"])
GOLD = dg.AssetKey(["gold", "fruits"])
WARNS = "silver.fruits: check length_fruit warns"
FAILED = "silver.fruits: the run failed"


@pytest.mark.scenario
def test_a_failed_check_sends_one_message_and_its_resolution(watch: Watch) -> None:
    watch.run()
    assert watch.titles() == []
    watch.run("length_fruit")
    assert watch.titles() == [WARNS]
    watch.run("length_fruit")
    assert watch.titles() == []
    watch.run()
    assert watch.titles() == [f"Resolved: {WARNS}"]
    assert watch.titles() == []


def test_the_message_of_a_check_has_extent_rows_links_and_commands(watch: Watch) -> None:
    watch.run("length_fruit")
    (alert,) = watch.round()

    run_id = watch.instance.get_runs(limit=1)[0].run_id
    assert alert.lines == (
        "length_fruit: 1 of 4 rows break it. That is 25.00%.",
        "Row: id=x, email=masked:0123456789ab",
        "Row: id=y, email=masked",
        "Downstream: gold.fruits",
        "Owner: data-platform",
        f"Run: http://127.0.0.1:3000/runs/{run_id}",
        "Table: http://127.0.0.1:3000/assets/silver/fruits",
        (
            "Next: lakehouse sql 'SELECT * FROM silver.fruits WHERE"
            " coalesce(char_length(`fruit`) < 2, false) LIMIT 20'"
        ),
        "Next: lakehouse check silver.fruits",
        "Next: lakehouse mute silver.fruits --until 2h",
    )
    assert (alert.owner, alert.table, alert.severity) == (
        "data-platform",
        "silver.fruits",
        "warn",
    )


def test_a_failed_check_of_published_rows_shows_how_to_repeat_it(watch: Watch) -> None:
    watch.run("unique_fruit", only_checks=True)
    (alert,) = watch.round()
    assert alert.lines[-2:] == (
        "Next: lakehouse check silver.fruits",
        "Next: lakehouse history silver.fruits",
    )


@pytest.mark.long
def test_a_failed_run_sends_one_message_and_its_resolution(watch: Watch) -> None:
    watch.error = LakehouseError("The disk is full.", next_step="Free some.")
    watch.run()
    (alert,) = watch.round()
    assert alert.title == FAILED
    assert alert.lines[0] == "LakehouseError: The disk is full. Free some."
    assert "Next: lakehouse retry silver.fruits" in alert.lines
    watch.run()
    assert watch.titles() == []
    watch.error = None
    watch.run()
    assert watch.titles() == [f"Resolved: {FAILED}"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), dg.DagsterExecutionInterruptedError()])
def test_an_interrupted_run_is_no_incident(watch: Watch, error: BaseException) -> None:
    watch.error = error
    watch.run()
    assert watch.instance.get_runs(limit=1)[0].status is dg.DagsterRunStatus.FAILURE
    assert watch.titles() == []


@pytest.mark.parametrize(
    ("published", "title"), [([], FAILED), ([FRUITS], "gold.fruits: the run failed")]
)
def test_a_dead_run_is_an_incident_of_its_first_table_without_a_publish(
    watch: Watch, published: list[dg.AssetKey], title: str
) -> None:
    run = watch.instance.create_run_for_job(
        watch.definitions.resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({GOLD, FRUITS}),
    )
    for key in published:
        data = StepMaterializationData(dg.AssetMaterialization(key))
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION.value
        event = dg.DagsterEvent(kind, run.job_name, event_specific_data=data)
        watch.instance.report_dagster_event(event, run.run_id)
    watch.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")
    (alert,) = watch.round()
    assert alert.title == title
    assert alert.lines[0] == "The process of this run (pid 7) is gone."


@pytest.mark.long
def test_a_failed_step_sends_one_message_while_its_run_continues(watch: Watch) -> None:
    during_the_run = []

    @dg.asset
    def a_fails() -> None:
        raise ValueError

    @dg.asset
    def b_continues() -> None:
        during_the_run.extend(watch.round())
        assert watch.round() == []

    dg.materialize([a_fails, b_continues], instance=watch.instance, raise_on_error=False)

    assert [alert.kind for alert in during_the_run] == ["failed"]
    assert during_the_run[0].lines[0].startswith("ValueError")
    assert watch.round() == []


def test_an_error_that_can_quote_data_is_shown_by_its_type(watch: Watch) -> None:
    watch.error = ValueError("cannot read one@example.com")
    watch.run()
    (alert,) = watch.round()
    assert alert.lines[0] == "ValueError; its text can contain data, see the run."
    assert "one@example.com" not in (watch.settings.home / "alerts.jsonl").read_text()


def test_a_failed_ingest_of_a_path_names_the_command_to_repeat(watch: Watch) -> None:
    watch.error, watch.tags = LakehouseError("Full."), {FEED_TAG: "fruits", PATH_TAG: "a.csv"}
    watch.run()
    assert "Next: lakehouse ingest fruits --path …" in watch.round()[0].lines


def test_a_file_can_be_of_any_feed_of_its_table(watch: Watch) -> None:
    feeds = (FEED, SimpleNamespace(name="late", table="gold.fruits"))
    context = replace(watch.context(), feeds=feeds)
    commands = context.reject_commands("gold.fruits", [{"_source_file": "a.csv"}])
    assert [command.split()[4] for command in commands] == ["fruits", "late"]


def test_checks_without_a_result_are_resolved_by_their_next_evaluation(watch: Watch) -> None:
    title = "silver.fruits: its checks could not be evaluated"
    watch.error = LakehouseError("Spark exited.")
    watch.run(only_checks=True)
    (alert,) = watch.round()
    assert (alert.title, alert.lines[0]) == (title, "LakehouseError: Spark exited.")
    assert "Next: lakehouse check silver.fruits" in alert.lines
    watch.error = None
    watch.run(only_checks=True)
    assert watch.titles() == [f"Resolved: {title}"]


@pytest.mark.long
def test_a_retried_run_is_sent_at_its_second_failure(watch: Watch) -> None:
    watch.tags = {STALE: "0123"}
    watch.error = LakehouseError("The disk is full.")
    watch.run()
    assert watch.titles() == []
    watch.run()
    (alert,) = watch.round()
    assert (alert.title, alert.lines[0][-10:]) == (FAILED, ", 2 times.")
    watch.error = None
    watch.run()
    assert watch.titles() == [f"Resolved: {FAILED}"]


@pytest.mark.long
def test_a_failed_job_is_resolved_by_its_next_success(watch: Watch) -> None:
    watch.work(OSError("no route"))
    assert watch.titles() == ["job upkeep: the run failed"]
    watch.work()
    assert watch.titles() == ["Resolved: job upkeep: the run failed"]


@pytest.mark.long
def test_a_new_tag_of_an_old_run_is_no_incident(watch: Watch) -> None:
    watch.error = LakehouseError("The disk is full.")
    watch.run()
    watch.round()
    run_id = watch.instance.get_runs(limit=1)[0].run_id
    watch.error = None
    watch.run()
    watch.round()
    watch.round(later=timedelta(minutes=10))
    watch.instance.add_run_tags(run_id, {"seen": "by ben"})
    assert watch.titles(later=timedelta(minutes=10)) == []
