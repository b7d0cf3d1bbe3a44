"""What is seen to break: checks, runs, jobs, late deliveries, and that something cannot
be seen.
"""

from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.alert_state import read_state
from lakehouse.monitoring.detectors import failed_checks
from lakehouse.monitoring.heartbeat import read_heartbeat
from lakehouse.orchestration.blocked_tables import STALE
from lakehouse_tests.monitoring.breaks import reject
from lakehouse_tests.monitoring.receiver import Receiver
from lakehouse_tests.monitoring.watch import Watch

FRUITS = dg.AssetKey(["silver", "fruits"])
GOLD = dg.AssetKey(["gold", "fruits"])
WARNS, FAILS = (
    "silver.fruits: check length_fruit warns",
    "silver.fruits: check unique_fruit failed",
)


@pytest.mark.scenario
def test_a_check_that_warns_is_told_once_and_when_it_passes_again(watch: Watch) -> None:
    watch.run()
    assert watch.says() == []
    watch.run("length_fruit")
    assert watch.says() == [WARNS]
    watch.run("length_fruit")
    assert watch.says() == []
    watch.run()
    assert watch.says() == [f"Resolved: {WARNS}"]
    assert watch.says() == []


@pytest.mark.scenario
def test_a_message_says_how_bad_it_is_since_when_what_follows_and_what_to_do(
    watch: Watch,
) -> None:
    watch.run()
    watch.run("length_fruit")
    (alert,) = watch.look()

    run_id = watch.instance.get_runs(limit=1)[0].run_id
    assert alert.lines[0] == "length_fruit: 1 of 4 rows break it. That is 25.00%."
    assert alert.lines[1].startswith("It passed last at 20")
    assert alert.lines[1].endswith(" UTC, on snapshot 123.")
    assert alert.lines[2:] == (
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


@pytest.mark.scenario
def test_an_error_proposes_what_mends_it_and_what_is_over_says_in_which_run(
    watch: Watch,
) -> None:
    watch.run("unique_fruit")
    (alert,) = watch.look()
    commands = [line for line in alert.lines if line.startswith("Next: ")]
    assert commands == [
        "Next: lakehouse retry silver.fruits",
        "Next: lakehouse history silver.fruits",
    ]
    watch.run()
    (over,) = watch.look()
    run_id = watch.instance.get_runs(limit=1)[0].run_id
    assert over.lines[0] == f"Check unique_fruit passed in run {run_id[:8]}."
    assert f"Run: http://127.0.0.1:3000/runs/{run_id}" in over.lines


@pytest.mark.long
def test_a_check_of_the_same_snapshot_is_not_seen_once_more(watch: Watch) -> None:
    watch.run("unique_fruit")
    watch.look()
    watch.run("unique_fruit", checks_alone=True)
    assert watch.look() == []
    (incident,) = read_state(watch.settings).open.values()
    assert incident.times == 1


@pytest.mark.long
@pytest.mark.parametrize(("is_one_host", "minutes"), [(False, 1), (True, 10)])
def test_what_a_check_found_is_seen_though_a_newer_event_was_seen_before_it(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, *, is_one_host: bool, minutes: int
) -> None:
    watch.run()
    watch.look()
    # As PostgreSQL, where the transaction of a lower number may end last.
    monkeypatch.setattr(failed_checks, "newest_event", lambda _: 1_000_000)
    monkeypatch.setattr(failed_checks, "is_of_one_host", lambda _: is_one_host)
    watch.look()
    watch.look()
    watch.run("length_fruit", checks_alone=True)
    later = timedelta(minutes=minutes)
    assert watch.look(later=later - timedelta(seconds=30)) == []
    told = watch.look(later=later)
    assert [alert.title for alert in told] == [WARNS]
    # Such a look is no more than once in that time.
    watch.run("unique_fruit", checks_alone=True)
    assert watch.look(later=later) == []


@pytest.mark.long
def test_a_run_that_a_check_stopped_is_one_message(watch: Watch) -> None:
    watch.run("unique_fruit")
    assert watch.says() == [FAILS]
    watch.run()
    assert watch.says() == [f"Resolved: {FAILS}"]


def test_checks_that_are_run_alone_count(watch: Watch) -> None:
    watch.run("unique_fruit", "length_fruit", checks_alone=True)
    assert sorted(watch.says()) == sorted([WARNS, FAILS])


def test_an_evaluation_outside_of_runs_counts(watch: Watch) -> None:
    evaluation = dg.AssetCheckEvaluation(FRUITS, "unique_fruit", False, {})
    watch.instance.report_runless_asset_event(evaluation)
    assert watch.says() == [FAILS]


def test_what_broke_and_mended_while_nobody_looked_is_told(watch: Watch) -> None:
    watch.run("length_fruit")
    watch.run()
    assert watch.says() == [WARNS, f"Resolved: {WARNS}"]


@pytest.mark.long
def test_what_broke_before_anybody_looked_is_told_where_it_is_still_broken(
    watch: Watch,
) -> None:
    watch.run("length_fruit", "unique_fruit")
    watch.run("length_fruit")
    (watch.settings.home / "alerts" / "state.json").unlink()
    assert watch.says() == [WARNS]


@pytest.mark.long
def test_a_failed_run_is_told_once_however_often_it_is_tried(watch: Watch) -> None:
    watch.error = LakehouseError("The disk is full.", next_step="Free some.")
    watch.run()
    (alert,) = watch.look()
    assert alert.title == "silver.fruits: the run failed"
    assert "LakehouseError: The disk is full. Free some." in alert.lines
    assert "Next: lakehouse retry silver.fruits" in alert.lines
    watch.run()
    assert watch.says() == []
    watch.error = None
    watch.run()
    assert watch.says() == ["Resolved: silver.fruits: the run failed"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), dg.DagsterExecutionInterruptedError()])
def test_a_run_that_a_person_stopped_is_not_told(watch: Watch, error: BaseException) -> None:
    watch.error = error
    watch.run()
    assert watch.instance.get_runs(limit=1)[0].status is dg.DagsterRunStatus.FAILURE
    assert watch.says() == []


def test_a_run_whose_process_is_gone_is_told_of_its_first_table(watch: Watch) -> None:
    run = watch.instance.create_run_for_job(
        watch.definitions.resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({GOLD, FRUITS}),
    )
    watch.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")
    (alert,) = watch.look()
    assert alert.title == "silver.fruits: the run failed"
    assert alert.lines[0] == "The process of this run (pid 7) is gone."


def test_an_error_that_may_quote_data_is_told_by_its_kind(watch: Watch) -> None:
    watch.error = ValueError("cannot read one@example.com")
    watch.run()
    (alert,) = watch.look()
    assert alert.lines[0] == "ValueError; its text may quote data, the run has it."
    assert "one@example.com" not in (watch.settings.home / "alerts.jsonl").read_text()


def test_what_the_system_says_is_told_with_its_path(watch: Watch) -> None:
    watch.error = NotADirectoryError(20, "Not a directory", "/data/inbox/fruits")
    watch.run()
    (alert,) = watch.look()
    assert (
        alert.lines[0] == "NotADirectoryError: [Errno 20] Not a directory: '/data/inbox/fruits'"
    )


def test_where_a_folder_is_none_the_path_is_told(watch: Watch) -> None:
    file = watch.settings.home / "rejected"
    file.write_text("")
    alerts = watch.look() + watch.look(later=timedelta(minutes=3))
    assert [alert.title for alert in alerts] == ["rejected files cannot be monitored"]
    assert f"'{file}" in alerts[0].lines[0]


@pytest.mark.long
def test_what_is_tried_again_by_itself_is_told_at_the_second_failure(watch: Watch) -> None:
    watch.tags = {STALE: "0123"}
    watch.error = LakehouseError("The disk is full.")
    watch.run()
    assert watch.says() == []
    watch.run()
    (alert,) = watch.look()
    assert (alert.title, alert.lines[0][-13:]) == (
        "silver.fruits: the run failed",
        "seen 2 times.",
    )
    watch.error = None
    watch.run()
    assert watch.says() == ["Resolved: silver.fruits: the run failed"]


@pytest.mark.long
def test_what_healed_by_itself_before_anybody_was_told_is_no_message(watch: Watch) -> None:
    watch.tags = {STALE: "0123"}
    watch.error = LakehouseError("The disk is full.")
    watch.run()
    watch.error = None
    watch.look()
    watch.run()
    assert watch.says() == []
    assert read_state(watch.settings).open == {}


@pytest.mark.long
def test_a_job_that_fails_is_over_once_it_went_through(watch: Watch) -> None:
    watch.work(OSError("no route"))
    assert watch.says() == ["job upkeep: the run failed"]
    watch.work()
    assert watch.says() == ["Resolved: job upkeep: the run failed"]


@pytest.mark.long
def test_a_delivery_that_is_late_is_told_until_it_comes(watch: Watch) -> None:
    rows = delivered(watch)
    watch.look()
    assert watch.says(later=timedelta(hours=5)) == []
    (alert,) = watch.look(later=timedelta(hours=7))
    assert (alert.title, alert.brief) == (
        "feed fruits: the next delivery is overdue",
        "7.0 hours old",
    )
    # Several lakehouses may be read together.
    assert alert.lakehouse == watch.settings.title
    assert "7.0 hours ago; 6.0 hours are allowed." in alert.lines[0]
    assert watch.says(later=timedelta(hours=8)) == []
    rows.append(rows.scan().to_arrow())
    assert watch.says(later=timedelta(hours=5)) == [
        "Resolved: feed fruits: the next delivery is overdue"
    ]


def test_a_table_that_is_older_than_declared_is_late_until_a_run_finds_it_as_it_should_be(
    watch: Watch,
) -> None:
    watch.table = replace(watch.table, freshness=timedelta(hours=2))
    delivered(watch)
    (alert,) = watch.look(later=timedelta(hours=3))
    assert alert.title == "silver.fruits is overdue"
    assert "3.0 hours ago; 2.0 hours are allowed." in alert.lines[0]
    watch.instance.report_runless_asset_event(dg.AssetMaterialization(["silver", "fruits"]))
    assert watch.says(later=timedelta(hours=1)) == ["Resolved: silver.fruits is overdue"]


def delivered(watch: Watch):
    """A table that was just written, by another engine."""
    import pyarrow as pa

    from lakehouse.iceberg.metadata.catalog import Catalog

    (watch.settings.home / "warehouse").mkdir(parents=True, exist_ok=True)
    client = Catalog.of(watch.settings).client
    client.create_namespace("silver")
    rows = pa.table({"id": [1]})
    table = client.create_table("silver.fruits", rows.schema)
    table.append(rows)
    return table


@pytest.mark.long
def test_where_nobody_can_look_somebody_is_told_and_the_rest_goes_on(watch: Watch) -> None:
    reject(watch, "short")
    (reason,) = (watch.settings.home / "rejected" / "fruits").glob("*.json")
    good = reason.read_text()
    reason.write_text("{")
    watch.run("length_fruit")
    assert watch.says() == [WARNS]
    assert watch.says(later=timedelta(minutes=3)) == ["rejected files cannot be monitored"]
    assert watch.says(later=timedelta(minutes=4)) == []
    reason.write_text(good)
    assert sorted(watch.says(later=timedelta(minutes=5))) == [
        "Resolved: rejected files cannot be monitored",
        "feed fruits: file short was rejected",
    ]


def test_each_look_leaves_a_sign_of_life(watch: Watch, receiver: Receiver) -> None:
    before = read_heartbeat(watch.settings)
    watch.with_settings(heartbeat_url=f"http://127.0.0.1:{receiver.port}/ping").look()
    after = read_heartbeat(watch.settings)
    assert before and after and before.at < after.at
    assert [taken.path for taken in receiver.taken] == ["/ping"]


def test_an_address_that_does_not_answer_stops_nothing(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.with_settings(heartbeat_url="http://127.0.0.1:1/secret").look()
    assert "LAKEHOUSE_HEARTBEAT_URL was not reached" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.long
def test_an_empty_look_changes_nothing_that_is_kept(watch: Watch) -> None:
    watch.run("length_fruit")
    watch.look()
    before = read_state(watch.settings)
    watch.look()
    assert read_state(watch.settings).open == before.open


@pytest.mark.long
def test_an_old_run_that_gets_a_tag_is_not_told_again(watch: Watch) -> None:
    watch.error = LakehouseError("The disk is full.")
    watch.run()
    watch.look()
    run_id = watch.instance.get_runs(limit=1)[0].run_id
    watch.error = None
    watch.run()
    watch.look()
    # Ten minutes later.
    watch.look(later=timedelta(minutes=10))
    watch.instance.add_run_tags(run_id, {"seen": "by somebody"})
    assert watch.says(later=timedelta(minutes=10)) == []
