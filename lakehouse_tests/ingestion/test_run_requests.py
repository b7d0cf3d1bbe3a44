"""The run requests of a feed's sensor and schedule; no run starts here."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.test_utils import create_run_for_test
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, IntegerType, NestedField

from lakehouse.definitions import FEEDS, PROJECT, TABLES, definitions
from lakehouse.iceberg.metadata.unchanged_watermarks import UNCHANGED_PROPERTY
from lakehouse.iceberg.read.inputs import latest
from lakehouse.ingestion.collect import Waiting, list_waiting
from lakehouse.ingestion.sensors import feed_sensors
from lakehouse.ingestion.sensors.run_requests import FeedRunPlanner, make_requests
from lakehouse.orchestration.backoff import pause_seconds
from lakehouse.orchestration.blocked_tables import (
    CHECK_FAILED,
    blocked_tag,
    mains,
    note_blocked,
)
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.incident_reports import read_reports
from lakehouse.orchestration.partitions.partition_bounds import range_of
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.project import Project
from lakehouse.settings import Settings
from lakehouse.spark.processes import Process
from lakehouse.storage.stores import open_store
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions

Repository = dg.RepositoryDefinition
LATER = timedelta(seconds=5)
"""More than the second by which Dagster's SQLite rounds down when a run changed."""
FEED = {"lakehouse/feed": "fruits"}
FRUITS = ("bronze.raw_fruits", "silver.fruits")


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened


@pytest.fixture(autouse=True)
def without_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_sensors, "WATCH_SECONDS", 0)


@pytest.fixture
def put(settings: Settings) -> Callable[..., Path]:
    def file(name: str, feed: str = "fruits", second: int = 0) -> Path:
        path = settings.home / "inbox" / feed / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id,fruit,berry\n1,Apple,false\n")
        os.utime(path, (1_700_000_000 + second,) * 2)
        return path

    return file


@pytest.fixture
def tick(settings: Settings, instance: dg.DagsterInstance) -> Callable[..., object]:
    repository = definitions(lambda: settings).get_repository_def()

    def once(name: str = "fruits_files") -> object:
        context = dg.build_sensor_context(instance=instance, repository_def=repository)
        found = repository.get_sensor_def(name).evaluate_tick(context)
        return found.run_requests or found.skip_message

    return once


@pytest.fixture
def ask(settings: Settings, instance: dg.DagsterInstance) -> Callable[..., object]:
    graph, engine = definitions(lambda: settings).resolve_asset_graph(), open_engine(settings)
    requests = FeedRunPlanner(FEEDS["fruits"], TABLES)

    def at(now: datetime | None = None) -> object:
        found = list_waiting(FEEDS["fruits"], open_store(settings))
        asked = requests.decide(instance, graph, engine, found, now or datetime.now(UTC))
        return [run.tables for run, _ in asked.runs] or asked.reason

    return at


def test_a_tick_reports_what_is_passed_over(settings: Settings, tick, put) -> None:
    file = put("a.csv")
    file.with_name("link.csv").symlink_to(file)
    assert tick()
    assert [note.report.title for note in read_reports(settings)] == [
        "feed fruits: inbox/fruits/link.csv is a link, and is passed over"
    ]


def made(
    client: Catalog, name: str, schema: Schema, rows: pa.Table, **how: PartitionSpec
) -> Table:
    client.create_namespace_if_not_exists(name.partition(".")[0])
    table = client.create_table(name, schema, **how)
    table.append(rows)
    return table


def keys(request: dg.RunRequest) -> list[str]:
    return [key.to_user_string() for key in request.asset_selection]


def test_nothing_is_asked_for_where_nothing_waits(tick, settings) -> None:
    (settings.home / "inbox" / "fruits").mkdir(parents=True)
    assert tick() == "Nothing waits in inbox/fruits/, and no table has anything to compute."


def test_files_that_wait_are_one_run_of_all_that_follows(tick, put) -> None:
    for number in range(3):
        put(f"{number}.csv", second=number)
    (request,) = tick()
    assert keys(request) == ["bronze/raw_fruits", "silver/fruits"]
    checked = {key.asset_key.to_user_string() for key in request.asset_check_keys}
    assert checked == {"bronze/raw_fruits", "silver/fruits"}
    assert request.tags["lakehouse/feed"] == "fruits"
    assert request.run_key is None


def test_what_is_computed_by_days_is_not_asked_for_before_its_rows_are_there(tick, put) -> None:
    put("a.csv", "bnpl")
    (request,) = tick("bnpl_files")
    assert keys(request) == ["bronze/bnpl_transactions_raw"]


@pytest.mark.parametrize("status", ["STARTING", "STARTED", "CANCELING"])
def test_no_second_run_is_asked_for_while_one_goes_on(tick, put, instance, status: str) -> None:
    put("a.csv")
    run = create_run_for_test(instance, status=dg.DagsterRunStatus[status], tags=FEED)
    assert tick() == f"Run {run.run_id[:8]} of the feed is {status.lower()}; one at a time."


def test_a_run_of_another_feed_or_one_that_was_never_queued_holds_nothing_up(
    tick, put, instance
) -> None:
    """Where the daemon died between making a run and queueing it, it stays so for ever."""
    put("a.csv")
    of_bnpl = {"lakehouse/feed": "bnpl"}
    create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags=of_bnpl)
    create_run_for_test(instance, status=dg.DagsterRunStatus.NOT_STARTED, tags=FEED)
    assert len(tick()) == 1


def test_a_run_whose_process_was_killed_is_a_failed_one(tick, put, instance) -> None:
    put("a.csv")
    killed = replace(Process.current(), started_at=1.0)
    create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags=FEED | killed.tags)
    assert tick().startswith("The last run failed")


def test_a_failure_of_the_system_is_tried_again_after_a_while(ask, put, instance) -> None:
    put("a.csv")
    runs = [
        create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE, tags=FEED)
        for _ in range(3)
    ]
    now = datetime.now(UTC)
    assert ask(now).startswith(
        f"The last 3 runs failed, the newest is {runs[-1].run_id[:8]}; the next try is at "
    )
    assert ask(now + timedelta(seconds=pause_seconds(3)) - LATER).startswith(
        "The last 3 runs failed"
    )
    assert ask(now + timedelta(seconds=pause_seconds(3)) + LATER) == [
        ("bronze.raw_fruits", "silver.fruits")
    ]


@pytest.mark.parametrize(
    ("status", "tag"),
    [("SUCCESS", "any"), ("FAILURE", CHECK_FAILED), ("FAILURE", blocked_tag("silver.fruits"))],
)
def test_a_success_and_a_blocked_write_are_followed_by_no_pause(
    ask, put, instance, status: str, tag: str
) -> None:
    put("a.csv")
    create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE, tags=FEED)
    newest = dg.DagsterRunStatus[status]
    create_run_for_test(instance, status=newest, tags=FEED | {tag: "any"})
    assert ask() == [("bronze.raw_fruits", "silver.fruits")]


def test_what_a_run_left_as_it_was_is_not_asked_for_again(tick, put, instance) -> None:
    """It would be asked for every few seconds for ever."""
    put("a.csv")
    (request,) = tick()
    done = create_run_for_test(
        instance, status=dg.DagsterRunStatus.SUCCESS, tags=dict(request.tags)
    )
    assert tick() == " ".join(
        f"{table} is as stale as before run {done.run_id[:8]} computed it; no run of it is"
        " requested again."
        for table in ("bronze.raw_fruits", "silver.fruits")
    )
    put("b.csv")
    assert len(tick()) == 1


ID, ROWS = (
    Schema(NestedField(1, "id", IntegerType())),
    pa.table({"id": pa.array([1], pa.int32())}),
)


@pytest.fixture
def tables(settings: Settings) -> list[Table]:
    (settings.home / "inbox" / "fruits").mkdir(parents=True)
    client = open_engine(settings).catalog.client
    return [made(client, name, ID, ROWS) for name in FRUITS]


@pytest.mark.long
def test_what_a_run_changed_no_row_of_is_up_to_date(tick, tables, instance) -> None:
    raw, silver = tables
    (request,) = tick()
    assert keys(request) == ["silver/fruits"]
    create_run_for_test(instance, status=dg.DagsterRunStatus.SUCCESS, tags=dict(request.tags))

    read = {"bronze.raw_fruits": str(raw.current_snapshot().snapshot_id)}
    found = {"snapshot": str(silver.current_snapshot().snapshot_id), "inputs": read}
    with silver.transaction() as change:
        change.set_properties({UNCHANGED_PROPERTY: json.dumps(found)})
    assert tick() == "Nothing waits in inbox/fruits/, and no table has anything to compute."


@pytest.mark.long
def test_what_was_rolled_back_is_asked_for_again(tick, tables, instance) -> None:
    """The tables are as they were before the run that computed them, and stale again."""
    _, silver = tables
    before = silver.current_snapshot().snapshot_id
    for _ in range(2):
        (request,) = tick()
        assert keys(request) == ["silver/fruits"]
        done = create_run_for_test(
            instance, status=dg.DagsterRunStatus.SUCCESS, tags=dict(request.tags)
        )
        assert f"as stale as before run {done.run_id[:8]}" in tick()

        silver.append(ROWS)
        silver.manage_snapshots().rollback_to_snapshot(before).commit()


def test_pauses_double_up_to_five_minutes() -> None:
    pauses = [pause_seconds(failures) for failures in (1, 2, 3, 6, 7, 50)]
    assert pauses == [5, 10, 20, 160, 300, 300]


def test_a_file_that_is_written_to_is_named(settings, instance) -> None:
    graph, engine = definitions(lambda: settings).resolve_asset_graph(), open_engine(settings)
    found = Waiting((), ("inbox/fruits/a.csv",))
    asked = FeedRunPlanner(FEEDS["fruits"], TABLES).decide(
        instance, graph, engine, found, datetime.now(UTC)
    )
    assert (asked.runs, asked.reason) == ((), "Still being written: inbox/fruits/a.csv.")


@pytest.fixture
def scheduled(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Repository]:
    def load(feed: str, project: Project = PROJECT) -> Repository:
        by_schedule = replace(project.feeds[feed], ingest_by="schedule")
        monkeypatch.setitem(project.feeds, feed, by_schedule)
        return project.definitions(lambda: settings).get_repository_def()

    return load


def test_a_feed_is_ingested_by_its_sensor_or_its_schedule_alone(settings, scheduled) -> None:
    by_sensor = PROJECT.definitions(lambda: settings).get_repository_def()
    assert by_sensor.has_sensor_def("fruits_files")
    assert not by_sensor.has_schedule_def("fruits_batch")
    by_schedule = scheduled("fruits")
    assert by_schedule.has_schedule_def("fruits_batch")
    assert not by_schedule.has_sensor_def("fruits_files")


def test_a_schedule_asks_for_what_waits(scheduled, instance, put) -> None:
    repository = scheduled("fruits")
    schedule = repository.get_schedule_def("fruits_batch")

    def requests() -> list[list[str]]:
        with dg.build_schedule_context(instance, repository_def=repository) as context:
            return [keys(request) for request in schedule.evaluate_tick(context).run_requests]

    assert requests() == []
    put("a.csv")
    assert requests() == [["bronze/raw_fruits", "silver/fruits"]]


RECENT = IcebergTable(
    "silver.recent",
    "Days.",
    [Column("d", "date")],
    OverwritePartitions(by="d"),
    partitioning=["d"],
)


@pytest.fixture
def with_other_days() -> Project:
    days = dg.DailyPartitionsDefinition("2026-03-01", timezone=FEEDS["bnpl"].time_zone)

    @iceberg_asset(
        RECENT,
        inputs={"raw": latest(FEEDS["bnpl"].table, by="_event_date")},
        partitions_def=days,
    )
    def recent(raw):
        return raw

    added = ModuleType("added")
    added.TABLE, added.recent = RECENT, recent
    return Project("lakehouse.assets", [added])


@pytest.fixture
def delivered(settings: Settings) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "_event_date"))
    schema = Schema(NestedField(1, "_event_date", DateType()))
    rows = pa.table({"_event_date": [date(2026, 2, 1), date(2026, 3, 2), date(2026, 3, 3)]})
    made(
        open_engine(settings).catalog.client,
        FEEDS["bnpl"].table,
        schema,
        rows,
        partition_spec=spec,
    )


@pytest.mark.long
@pytest.mark.usefixtures("delivered")
def test_tables_of_different_partitions_below_a_feed_are_asked_for_in_turn(
    settings, instance, with_other_days, scheduled
) -> None:
    loaded = with_other_days.definitions(lambda: settings)
    dg.Definitions.validate_loadable(loaded)
    repository = loaded.get_repository_def()

    def asked() -> list[tuple[set[str], tuple[str, str] | None]]:
        context = dg.build_sensor_context(instance=instance, repository_def=repository)
        requests = repository.get_sensor_def("bnpl_files").evaluate_tick(context).run_requests
        for done in requests:
            create_run_for_test(
                instance, status=dg.DagsterRunStatus.SUCCESS, tags=dict(done.tags)
            )
        return [(set(keys(done)), range_of(done.tags)) for done in requests]

    others = {
        "silver/bnpl_transactions_clean",
        "gold/bnpl_daily_summary",
        "gold/customer_profiles",
    }
    assert asked() == [(others, ("2026-02-01", "2026-03-03"))]
    by_schedule = scheduled("bnpl", with_other_days)
    with dg.build_schedule_context(instance, repository_def=by_schedule) as context:
        (batch,) = (
            by_schedule.get_schedule_def("bnpl_batch").evaluate_tick(context).run_requests
        )
    assert keys(batch) == ["silver/recent"]
    assert asked() == [({"silver/recent"}, ("2026-03-02", "2026-03-03"))]


@pytest.mark.long
def test_an_asset_without_a_table_is_requested_once_per_snapshot_of_its_source(
    settings, instance, put
) -> None:
    feed, engine = FEEDS["fruits"], open_engine(settings)
    raw = dg.asset(key=["bronze", "raw_fruits"])(lambda: None)
    report = dg.asset(key=["gold", "report"], deps=[raw])(lambda: None)
    graph = dg.Definitions(assets=[raw, report]).resolve_asset_graph()
    source = made(engine.catalog.client, feed.table, ID, ROWS)
    requests = FeedRunPlanner(feed, {})

    def asked() -> list[tuple[str, ...]]:
        found = list_waiting(feed, open_store(settings))
        decided = requests.decide(instance, graph, engine, found, datetime.now(UTC))
        for request in make_requests(graph, feed, decided):
            create_run_for_test(
                instance, status=dg.DagsterRunStatus.SUCCESS, tags=dict(request.tags)
            )
        return [run.tables for run, _ in decided.runs]

    assert [asked(), asked()] == [[("gold.report",)], []]
    source.append(ROWS)
    assert [asked(), asked()] == [[("gold.report",)], []]
    put("a.csv")
    assert asked() == [(feed.table,)]


@pytest.mark.long
@pytest.mark.usefixtures("delivered")
def test_after_a_blocked_write_each_stretch_of_days_is_tried_by_itself(
    settings, instance
) -> None:
    """So that a day which a rule blocks holds back its neighbours at most."""
    graph, engine = definitions(lambda: settings).resolve_asset_graph(), open_engine(settings)
    feed, clean = FEEDS["bnpl"], TABLES["silver.bnpl_transactions_clean"]
    read = mains(engine, [feed.table])

    def asked() -> list[PendingRun]:
        requests = FeedRunPlanner(feed, TABLES)
        decided = requests.decide(instance, graph, engine, Waiting(()), datetime.now(UTC))
        return [run for run, _ in decided.runs]

    def block(pending: PendingRun) -> None:
        run = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE, tags=FEED)
        note_blocked(instance, run.run_id, clean, pending.bounds, read)

    (with_a_gap,) = asked()
    assert len(with_a_gap.bounds) == 4
    block(with_a_gap)
    first, second = asked()
    assert [run.partitions for run in (first, second)] == [
        ("2026-02-01", "2026-02-01"),
        ("2026-03-02", "2026-03-03"),
    ]
    block(first)
    assert asked() == [second]
