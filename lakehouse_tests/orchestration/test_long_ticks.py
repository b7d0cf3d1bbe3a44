"""Ticks that go on beside `lakehouse dev`, of which no process is started here."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Timer

import dagster as dg
import pytest
from dagster._core.storage import sql
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy.pool import NullPool

from lakehouse.definitions import definitions
from lakehouse.ingestion import feed_sensors
from lakehouse.orchestration import long_ticks
from lakehouse.orchestration.dagster_internals import is_stopped
from lakehouse.orchestration.event_log import keep_engines
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.long_ticks import long_tick
from lakehouse.runtime.dev_address_file import leave_note, remove_note
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit

SENSOR = "fruits_files"


@pytest.fixture
def context(settings: Settings) -> Iterator[dg.SensorEvaluationContext]:
    """That of a tick with one before it."""
    with open_instance(settings) as instance:
        yield context_of(settings, instance, 1.0)


@pytest.fixture
def dev(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lakehouse dev`, as which this process passes."""
    monkeypatch.setattr(long_ticks, "keep_engines", lambda: None)
    settings.make_home()
    leave_note(settings, "http://127.0.0.1:3000")


def context_of(
    settings: Settings, instance: dg.DagsterInstance, last_tick: float | None
) -> dg.SensorEvaluationContext:
    repository = definitions(lambda: settings).get_repository_def()
    return dg.SensorEvaluationContext(
        None,
        last_tick_completion_time=last_tick,
        last_run_key=None,
        cursor=None,
        log_key=None,
        repository_name=None,
        instance=instance,
        repository_def=repository,
        sensor_name=SENSOR,
    )


def files_asked_for(context: dg.SensorEvaluationContext) -> object:
    assert context.repository_def is not None
    found = context.repository_def.get_sensor_def(SENSOR).evaluate_tick(context)
    return [run.tags["lakehouse/feed"] for run in found.run_requests or []]


@pytest.fixture
def drop(settings: Settings) -> Callable[[], None]:
    inbox = settings.home / "inbox" / "fruits"

    def file() -> None:
        inbox.mkdir(parents=True)
        (inbox / "a.csv").write_text("id,fruit,berry\n1,Apple,false\n")

    return file


@pytest.mark.usefixtures("dev")
def test_a_file_is_seen_by_a_later_look_of_the_same_tick(context, drop, monkeypatch) -> None:
    monkeypatch.setattr(feed_sensors, "WATCH_SECONDS", 0)
    Timer(0.5, drop).start()
    assert files_asked_for(context) == ["fruits"]


@pytest.mark.usefixtures("dev")
def test_what_a_stopped_sensor_sees_is_not_asked_for(context, drop, monkeypatch) -> None:
    monkeypatch.setattr(feed_sensors, "WATCH_SECONDS", 0)
    sensor = context.repository_def.get_sensor_def(SENSOR)
    assert not is_stopped(context)
    monkeypatch.setattr(feed_sensors, "is_stopped", lambda asked: asked is context)
    Timer(0.5, drop).start()
    assert sensor.evaluate_tick(context).skip_message == "The sensor was stopped."


@pytest.mark.usefixtures("dev")
def test_it_ends_with_dev(context: dg.SensorEvaluationContext, settings: Settings) -> None:
    with long_tick(context, settings) as tick:
        assert tick.seconds_left > 20
        began = time.monotonic()
        Timer(0.2, remove_note, [settings]).start()
        assert not tick.waits(10)
        assert time.monotonic() - began < 5
        assert not tick.seconds_left


@pytest.mark.long
@pytest.mark.usefixtures("dev")
def test_a_look_that_waits_for_a_file_ends_with_dev(
    context: dg.SensorEvaluationContext, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_sensors, "WATCH_SECONDS", 0)
    ended_at: list[float] = []

    def end() -> None:
        remove_note(settings)
        ended_at.append(time.monotonic())

    Timer(2, end).start()
    assert files_asked_for(context) == []
    assert time.monotonic() - ended_at[0] < 3


@pytest.mark.usefixtures("dev")
def test_the_first_one_and_one_that_is_tried_in_the_ui_are_short(settings: Settings) -> None:
    with open_instance(settings) as instance:
        untold = context_of(settings, instance, None)
        with long_tick(untold, settings) as tick:
            assert not tick.seconds_left
            assert not tick.waits(0.1)


def test_without_dev_it_is_short(
    context: dg.SensorEvaluationContext, settings: Settings
) -> None:
    with long_tick(context, settings) as tick:
        assert not tick.seconds_left


@pytest.mark.usefixtures("dev")
def test_few_are_long_at_once(context: dg.SensorEvaluationContext, settings: Settings) -> None:
    """So that the sensors of a project with many feeds do not wait for one another."""
    for _ in range(2):
        with ExitStack() as stack:
            ticks = [stack.enter_context(long_tick(context, settings)) for _ in range(6)]
            assert [bool(tick.seconds_left) for tick in ticks] == [True] * 4 + [False] * 2


def test_storages_keep_what_they_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_run_storage, sqlite_schedule_storage):
        monkeypatch.setattr(module, "create_engine", module.create_engine)
    monkeypatch.setattr(sql, "ScriptDirectory", sql.ScriptDirectory)
    keep_engines()
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    engine = sqlite_run_storage.create_engine(url, poolclass=NullPool)
    assert sqlite_schedule_storage.create_engine(url, poolclass=NullPool) is engine
    engine.dispose()
    config = sql.get_alembic_config(sqlite_run_storage.__file__)
    scripts = sql.ScriptDirectory.from_config(config)
    assert sql.ScriptDirectory.from_config(config) is scripts
