"""The sensor that many feeds share, and its cost with many tables."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.test_utils import create_run_for_test
from dagster_shared.serdes import serialize_value

from benchmarks.many_tables import TABLES_OF_FEED, fill_home, make_project, open_project
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.ingestion import collect
from lakehouse.ingestion.sensors import feed_sensors, shared_sensor
from lakehouse.ingestion.sensors.feed_sensors import failed_check_report
from lakehouse.orchestration.asset_keys import ALL_ASSETS, FEED_TAG, FEEDS_SENSOR
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.incident_reports import Note, read_reports, report_firing
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.project import Project
from lakehouse.settings import Settings
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse_tests.sqlite_statements import statements

pytestmark = pytest.mark.unit
FEEDS = 3
"""The tests lower `MOST_BY_THEMSELVES`, so that these share a sensor."""
RATES = pa.table({"currency": ["EUR"], "rate": [1.1]})
FIRST, LAST = "orders_000", f"orders_{FEEDS - 1:03}"


@dataclass
class Many:
    project: Project
    settings: Settings
    instance: dg.DagsterInstance
    repository: dg.RepositoryDefinition
    cursors: dict[str, str | None]

    def tick(self, name: str = FEEDS_SENSOR) -> list[dg.RunRequest] | str:
        with dg.build_sensor_context(
            self.instance,
            cursor=self.cursors.get(name),
            repository_def=self.repository,
            sensor_name=name,
        ) as context:
            ticked = self.repository.get_sensor_def(name).evaluate_tick(context)
            self.cursors[name] = context.cursor
        return list(ticked.run_requests or []) or str(ticked.skip_message)

    def look(self) -> None:
        for sensor in self.repository.sensor_defs:
            self.tick(sensor.name)

    def put(self, feed: str) -> Path:
        path = self.settings.home / "inbox" / feed / "a.csv"
        path.write_text("id,amount,placed_at\n7,1.50,2026-01-01 00:00:00\n")
        os.utime(path, (1_700_000_000,) * 2)
        return path

    def notes(self, key: str) -> list[Note]:
        return [note for note in read_reports(self.settings) if note.report.key == key]


@contextmanager
def opened(root: Path, feeds: int) -> Iterator[Many]:
    make_project(root, feeds)
    project, settings = open_project(root)
    fill_home(project, settings)
    repository = project.definitions(lambda: settings).get_repository_def()
    with open_instance(settings) as instance:
        yield Many(project, settings, instance, repository, {})


@pytest.fixture(scope="module", autouse=True)
def without_a_watch() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_sensors, "WATCH_SECONDS", 0)
        patch.setattr(shared_sensor, "WATCH_SECONDS", 0)
        patch.setattr(shared_sensor, "MOST_BY_THEMSELVES", FEEDS - 1)
        yield


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    with opened(tmp_path_factory.mktemp("scale") / "many_tables", FEEDS) as made:
        yield made


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    with opened(tmp_path_factory.mktemp("scale") / "few_tables", 1) as made:
        yield made


def asked_of(home: Many, do: Callable[[], object], settling: int = 3) -> int:
    for _ in range(settling):
        do()
    with statements() as asked:
        do()
    return len(asked)


def feeds_of(requests: list[dg.RunRequest] | str) -> list[str]:
    assert not isinstance(requests, str), requests
    return [request.tags[FEED_TAG] for request in requests]


@pytest.mark.long
def test_a_look_that_finds_nothing_new_asks_no_more_of_many_tables_than_of_few(
    few: Many, many: Many
) -> None:
    assert len(many.project.tables) > FEEDS * TABLES_OF_FEED
    assert asked_of(many, many.look) <= asked_of(few, few.look)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Property:DeprecationWarning")
def test_what_dagster_is_told_grows_with_the_tables_and_not_with_their_square(
    few: Many, many: Many
) -> None:
    sizes = []
    for home in (few, many):
        described = serialize_value(RepositorySnap.from_def(home.repository))
        sizes.append(len(described))
    assert sizes[1] < FEEDS * sizes[0]


def test_many_feeds_have_one_sensor_and_few_feeds_a_sensor_and_a_job_each(
    many: Many, few: Many
) -> None:
    sensors = {sensor.name for sensor in many.repository.sensor_defs}
    assert not any(f"{feed}_files" in sensors for feed in many.project.feeds)
    assert many.repository.get_sensor_def(FEEDS_SENSOR).job_name == ALL_ASSETS
    assert not any(name.startswith("ingest_") for name in many.repository.job_names)
    assert few.repository.has_sensor_def(f"{FIRST}_files")
    assert f"ingest_{FIRST}" in few.repository.job_names


def test_where_nothing_waits_it_says_so(many: Many) -> None:
    assert many.tick() == (
        f"Nothing waits in the inboxes of {FEEDS} feeds, and no table has anything to compute."
    )


def test_where_inboxes_are_missing_it_says_so(many: Many) -> None:
    inbox = many.settings.home / "inbox" / LAST
    inbox.rename(inbox.with_name("away"))
    assert many.tick() == (
        f"{LAST}: The folder {inbox} is missing, and no table has anything to compute."
    )
    inbox.with_name("away").rename(inbox)
    assert "Nothing waits" in str(many.tick())


def test_a_file_is_asked_for_by_a_run_of_its_feed_alone(many: Many) -> None:
    many.tick()
    file = many.put(LAST)
    (request,) = many.tick()
    assert request.tags[FEED_TAG] == LAST
    assert len(request.asset_selection or ()) == TABLES_OF_FEED
    file.unlink()
    assert "Nothing waits" in str(many.tick())


def test_while_a_run_of_a_feed_goes_on_others_are_asked_for(many: Many) -> None:
    files = [many.put(FIRST), many.put(LAST)]
    run = create_run_for_test(
        many.instance, status=dg.DagsterRunStatus.STARTED, tags={FEED_TAG: FIRST}
    )
    assert feeds_of(many.tick()) == [LAST]
    many.instance.delete_run(run.run_id)
    assert feeds_of(many.tick()) == [FIRST, LAST]
    for file in files:
        file.unlink()


@contextmanager
def broken(many: Many, feed: str) -> Iterator[None]:
    """The metadata of the feed's table is away."""
    location = open_engine(many.settings).catalog.load(f"bronze.{feed}").metadata_location
    metadata = Path(location.removeprefix("file://"))
    metadata.rename(metadata.with_suffix(".away"))
    yield
    metadata.with_suffix(".away").rename(metadata)


def test_a_feed_that_cannot_be_looked_at_stops_no_other_and_is_reported(many: Many) -> None:
    many.tick()
    files = [many.put(FIRST), many.put(LAST)]
    with broken(many, FIRST):
        assert feeds_of(many.tick()) == [LAST]
        notes = many.notes(f"feed {FIRST}")
        assert notes[-1].report.title == f"feed {FIRST} could not be checked"
    assert feeds_of(many.tick()) == [FIRST, LAST]
    assert many.notes(f"feed {FIRST}")[-1].resolved
    for file in files:
        file.unlink()


def test_a_look_that_takes_too_long_ends_and_the_next_begins_where_it_did(
    many: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [many.put(feed) for feed in (FIRST, "orders_001")]
    monkeypatch.setattr(shared_sensor, "_POLL_SECONDS", 0)
    assert feeds_of(many.tick()) == [FIRST]
    assert feeds_of(many.tick()) == ["orders_001"]
    assert f"{FEEDS - 1} feeds are checked next." in str(many.tick())
    monkeypatch.undo()
    assert feeds_of(many.tick()) == [FIRST, "orders_001"]
    for file in files:
        file.unlink()


def test_while_a_look_goes_on_another_tick_looks_at_nothing(
    many: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = []

    def open_once(settings: Settings) -> Engine:
        if not meanwhile:
            meanwhile.append("")
            meanwhile.append(many.tick())
        return open_engine(settings)

    monkeypatch.setattr(shared_sensor, "open_engine", open_once)
    many.tick()
    assert meanwhile[1] == "The check of an earlier tick is still running."
    assert "goes on" not in str(many.tick())


def test_a_look_waits_for_no_file_that_is_being_written(
    many: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.tick()
    file = many.put(LAST)
    os.utime(file)
    monkeypatch.setattr(collect, "time", None)
    with monkeypatch.context() as patch:
        patch.setattr(
            shared_sensor,
            "open_store",
            lambda of: LocalObjectStore(of.home, settle_seconds=600),
        )
        assert "Still being written" in str(many.tick())
    os.utime(file, (1_700_000_000,) * 2)
    assert feeds_of(many.tick()) == [LAST]
    file.unlink()


@pytest.mark.parametrize("name", [FIRST, "removed"])
@pytest.mark.parametrize(
    ("kind", "sensor"), [("few", f"{FIRST}_files"), ("many", FEEDS_SENSOR)]
)
def test_what_another_process_reported_of_a_feed_is_resolved_by_the_next_look(
    kind: str, sensor: str, name: str, request: pytest.FixtureRequest
) -> None:
    home: Many = request.getfixturevalue(kind)
    report = failed_check_report(replace(home.project.feeds[FIRST], name=name), "OSError: gone")
    report_firing(home.settings, report)
    home.repository = home.project.definitions(lambda: home.settings).get_repository_def()
    home.tick(sensor)
    assert home.notes(report.key)[-1].resolved


def test_a_note_that_cannot_be_written_stops_no_feed(
    many: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.tick()
    files = [many.put(FIRST), many.put(LAST)]
    notes = many.settings.home / "alerts"
    kept = notes.with_name("alerts_away")
    notes.rename(kept)
    notes.write_text("A file where a folder is expected.")
    with broken(many, FIRST):
        assert feeds_of(many.tick()) == [LAST]
    notes.unlink()
    kept.rename(notes)
    for file in files:
        file.unlink()


def test_rows_that_come_another_way_are_asked_for_without_a_file(many: Many) -> None:
    many.tick()
    loaded = open_engine(many.settings).catalog.load(f"bronze.{LAST}")
    rows = loaded.scan().to_arrow()
    loaded.append(pa.Table.from_pylist(rows.to_pylist()[:1], rows.schema))
    (request,) = many.tick()
    keys = {key.to_user_string() for key in request.asset_selection or ()}
    assert f"bronze/{LAST}" not in keys
    assert f"silver/{LAST}_0" in keys


def make_rates(settings: Settings) -> int:
    client = open_engine(settings).catalog.client
    client.create_namespace("ext")
    client.create_table("ext.rates", schema=RATES.schema)
    return add_rates(settings)


def add_rates(settings: Settings) -> int:
    rates = open_engine(settings).catalog.load("ext.rates")
    rates.append(RATES)
    snapshot = rates.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    root = tmp_path_factory.mktemp("scale") / "beside_ext"
    make_project(root, 2)
    assets = root / root.name / "assets"
    (assets / "rates.py").write_text(
        'import dagster as dg\n\nrates = dg.AssetSpec(["ext", "rates"])\n'
    )
    file = assets / "gold" / f"{FIRST}_0_0.py"
    rules = "from lakehouse.iceberg.rules.rows import"
    read = {
        rules: f"from lakehouse.iceberg.read.inputs import latest\n{rules}",
        "ORDERS}": 'ORDERS, "rates": latest("ext.rates")}',
        "(orders)": "(orders, rates)",
    }
    text = file.read_text()
    for before, after in read.items():
        text = text.replace(before, after)
    file.write_text(text)
    project, settings = open_project(root)
    fill_home(project, settings, {"ext.rates": make_rates(settings)})
    with pytest.MonkeyPatch.context() as patch, open_instance(settings) as instance:
        patch.setattr(shared_sensor, "MOST_BY_THEMSELVES", 1)
        repository = project.definitions(lambda: settings).get_repository_def()
        yield Many(project, settings, instance, repository, {})


def test_a_table_is_seen_to_change_in_a_namespace_where_nothing_is_declared(
    beside: Many,
) -> None:
    beside.tick()
    assert "Nothing waits" in str(beside.tick())
    add_rates(beside.settings)
    (request,) = beside.tick()
    keys = {key.to_user_string() for key in request.asset_selection or ()}
    assert keys == {f"gold/{FIRST}_0_0"}


def test_a_namespace_that_may_not_be_read_stops_no_feed_that_reads_none_of_it(
    beside: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Catalog.metadata_locations

    def refused(self: Catalog, tables: Iterable[str] | None = None) -> dict[str, str]:
        if tables is not None and "ext.rates" in tables:
            raise PermissionError("not authorized to perform glue:GetTables")
        return real(self, tables)

    monkeypatch.setattr(Catalog, "metadata_locations", refused)
    file = beside.put("orders_001")
    assert "orders_001" in feeds_of(beside.tick())
    file.unlink()
