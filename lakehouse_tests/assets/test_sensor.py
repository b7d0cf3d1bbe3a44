"""The run requests of a feed's sensor once there are tables."""

from collections.abc import Callable

import dagster as dg
import pytest

from lakehouse.definitions import definitions
from lakehouse.ingestion.sensors import feed_sensors
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse_tests.assets.deliveries import (
    CLEAN,
    DAYS,
    HEADER,
    PROFILES,
    RAW,
    SUMMARY,
    line,
    put,
)
from lakehouse_tests.assets.pipeline import Pipeline

pytestmark = pytest.mark.long

Ask = Callable[[Pipeline], list["Shown"] | str]


class Shown(dict):
    request: dg.RunRequest


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setattr(feed_sensors, "WATCH_SECONDS", 0)
    repositories: dict[str, dg.RepositoryDefinition] = {}

    def once(pipeline: Pipeline) -> list[Shown] | str:
        home = str(pipeline.settings.home)
        if home not in repositories:
            repositories[home] = definitions(lambda: pipeline.settings).get_repository_def()
        repository = repositories[home]
        with open_instance(pipeline.settings) as instance:
            context = dg.build_sensor_context(instance=instance, repository_def=repository)
            found = repository.get_sensor_def(f"{pipeline.feed}_files").evaluate_tick(context)
        return [_shown(request) for request in found.run_requests or []] or str(
            found.skip_message
        )

    return once


def _shown(request: dg.RunRequest) -> Shown:
    bounds = [
        request.tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")
    ]
    partitions = tuple(bounds) if any(bounds) else request.partition_key
    tables = [".".join(key.path) for key in request.asset_selection or ()]
    shown = Shown(tables=tables, partitions=partitions)
    shown.request = request
    return shown


def run(pipeline: Pipeline, asked: Shown) -> bool:
    request = asked.request
    selection = dg.AssetSelection.assets(*request.asset_selection) | dg.AssetSelection.checks(
        *request.asset_check_keys
    )
    with open_instance(pipeline.settings) as instance:
        project = definitions(lambda: pipeline.settings)
        return materialize(
            project, instance, selection, partition=asked["partitions"], tags=request.tags
        ).success


def test_a_blocked_table_is_held_back_until_its_input_changes(fruits, ask: Ask) -> None:
    fruits.put("a.csv", "1,Apple,false")
    assert fruits.ingest().success
    fruits.put("b.csv", "2,banana,false", second=1)
    refused = fruits.ingest()
    assert not refused.success

    message = ask(fruits)
    assert (
        message == f"silver.fruits is blocked since run {refused.runs[-1].run_id[:8]}. It"
        " is tried again once its input or its declaration changes, or by `lakehouse retry"
        " TABLE`."
    )
    assert ask(fruits) == message

    fruits.put("c.csv", "3,Cherry,false", second=2)
    (both,) = ask(fruits)
    assert both == {"tables": ["bronze.raw_fruits", "silver.fruits"], "partitions": None}
    assert not run(fruits, both)
    assert fruits.rows("SELECT count(*) FROM bronze.raw_fruits") == [(3,)]
    assert str(ask(fruits)).startswith("silver.fruits is blocked")

    fruits.engine.sql("DELETE FROM bronze.raw_fruits WHERE fruit = 'banana'")
    assert ask(fruits) == [{"tables": ["silver.fruits"], "partitions": None}]
    assert run(fruits, ask(fruits)[0])
    assert fruits.silver().keys() == {"Apple", "Cherry"}
    assert str(ask(fruits)).startswith("Nothing waits")


def test_without_dagsters_history_a_blocked_table_is_tried_once_more(fruits, ask: Ask) -> None:
    fruits.put("b.csv", "2,banana,false")
    assert not fruits.ingest().success
    with open_instance(fruits.settings) as instance:
        instance.wipe()
    asked = ask(fruits)
    assert asked == [{"tables": ["silver.fruits"], "partitions": None}]
    assert not run(fruits, asked[0])
    assert str(ask(fruits)).startswith("silver.fruits is blocked")


def test_a_check_that_stopped_a_run_stops_no_second_one(bnpl: Pipeline, ask: Ask) -> None:
    """A lost row in silver: gold waits, and is not asked for again on the same tables."""
    assert put(bnpl, "first.csv", line(1, DAYS[0])).success
    bnpl.write("more.csv", "\n".join([HEADER, line(3, DAYS[1])]), second=1)
    assert bnpl.materialize(RAW).success
    assert bnpl.materialize(CLEAN, partition=DAYS[1]).success
    bnpl.engine.sql(f"DELETE FROM {CLEAN} WHERE transaction_id = 3")
    (asked,) = ask(bnpl)
    assert asked == {"tables": [SUMMARY], "partitions": DAYS[1]}
    assert not run(bnpl, asked)
    (asked,) = ask(bnpl)
    assert asked == {"tables": [PROFILES], "partitions": None}
    assert not run(bnpl, asked)
    assert str(ask(bnpl)).startswith(f"{SUMMARY} is blocked")
    assert bnpl.rows(f"SELECT count(*) FROM {SUMMARY}") == [(1,)]

    bnpl.write("again.csv", "\n".join([HEADER, line(3, DAYS[1], at="13:00")]), second=2)
    while not isinstance(asked := ask(bnpl), str):
        assert all(run(bnpl, found) for found in asked)
    assert bnpl.rows(f"SELECT sum(transactions) FROM {SUMMARY}") == [(2,)]
