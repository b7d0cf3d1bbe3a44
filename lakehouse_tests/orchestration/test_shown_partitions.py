"""The UI shows the windows that rows came to, and runs know all of them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from sqlalchemy.exc import IntegrityError

from lakehouse.orchestration.dagster_internals import asset_graph, job_of_all_assets
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.partition_bounds import range_tags
from lakehouse.orchestration.runs import materialize
from lakehouse.orchestration.shown_partitions import show_existing, show_partitions
from lakehouse.orchestration.table_partitions import table_partitions
from lakehouse.orchestration.windows_with_rows import WindowsWithRows
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import SAMPLES, Settings
from lakehouse.tables.table import Column, IcebergTable, by_day, by_hour, by_month
from lakehouse_tests.dagster_homes import query

pytestmark = pytest.mark.unit

COLUMNS = [Column("day", "date"), Column("at", "timestamp")]
VISITS = IcebergTable(
    "silver.visits", "Visits.", COLUMNS, by_day("day", since="2020-01-01", time_zone="UTC")
)
DAYS = table_partitions(VISITS)
KEY = dg.AssetKey(["silver", "visits"])
PARTITIONS = """
{
  assetNodes {
    id
    partitionKeys
    partitionStats { numMaterialized numPartitions numFailed }
  }
  partitionSetsOrError(
    repositorySelector: {
      repositoryName: "__repository__", repositoryLocationName: "lakehouse.definitions"
    }
    pipelineName: "all_visits"
  ) { ... on PartitionSets { results { partitionsOrError {
    ... on Partitions { results { name } }
  } } } }
}
"""
ADD = """
mutation ($key: String!, $name: String!) {
  addDynamicPartition(
    repositorySelector: {
      repositoryName: "__repository__", repositoryLocationName: "lakehouse.definitions"
    }
    partitionsDefName: $name
    partitionKey: $key
  ) { __typename }
}
"""


@dg.multi_asset(
    specs=[dg.AssetSpec(KEY)],
    partitions_def=DAYS,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def visits(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """As a plain asset has them: by Dagster's own means."""
    assert context.partition_time_window.start.tzinfo
    for key in context.partition_keys:
        context.add_asset_metadata({"dagster/partition_row_count": 1}, KEY, key)
    return dg.MaterializeResult(asset_key=KEY)


defs = dg.Definitions([visits], jobs=[dg.define_asset_job("all_visits", selection=[KEY])])


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened


@pytest.fixture
def ui(instance: dg.DagsterInstance) -> Iterator[Any]:
    """What the webserver answers by, with the definitions of this module loaded."""
    target = LoadableTargetOrigin(python_file=__file__, attribute="defs")
    origin = InProcessCodeLocationOrigin(target, location_name=SAMPLES)
    with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget([origin])) as process:
        yield process.create_request_context()


def seen(ui: Any) -> Mapping[str, Any]:
    """What the UI shows of the asset."""
    (node,) = query(ui, PARTITIONS).data["assetNodes"]
    shown: Mapping[str, Any] = node
    return shown


def shown(instance: dg.DagsterInstance) -> Sequence[str]:
    return instance.get_dynamic_partitions(DAYS.name)


def run(instance: dg.DagsterInstance, *partition: str) -> None:
    bounds = (partition[0], partition[-1])
    assert materialize(defs, instance, dg.AssetSelection.all(), partition=bounds).success


def of_ui(instance: dg.DagsterInstance, first: str, last: str) -> None:
    """Run a range as the UI's backfill does."""
    job = job_of_all_assets(defs)
    assert job.execute_in_process(instance=instance, tags=range_tags(first, last)).success


def test_no_partition_is_missing_where_none_ever_held_a_row(ui: Any) -> None:
    assert seen(ui)["partitionKeys"] == []
    assert seen(ui)["partitionStats"]["numPartitions"] == 0


def test_what_is_shown_counts_by_what_was_computed_before_it_was(instance, ui: Any) -> None:
    run(instance, "2024-03-05")
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-07"])
    node = seen(ui)
    assert node["partitionKeys"] == ["2024-03-05", "2024-03-07"]
    counts = {"numMaterialized": 1, "numPartitions": 2, "numFailed": 0}
    assert node["partitionStats"] == counts


def test_the_partitions_of_a_job_are_those_of_its_assets(instance, ui: Any) -> None:
    show_partitions(instance, DAYS, ["2024-03-05"])
    answer = query(ui, PARTITIONS).data["partitionSetsOrError"]
    (of_job,) = answer["results"]
    assert of_job["partitionsOrError"]["results"] == [{"name": "2024-03-05"}]


def test_an_older_day_takes_its_place_in_the_order_of_time(instance) -> None:
    show_partitions(instance, DAYS, ["2024-03-07", "2024-03-05"])
    show_partitions(instance, DAYS, ["2021-12-31", "2024-03-06"])
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-08"])
    days = ["2021-12-31", "2024-03-05", "2024-03-06", "2024-03-07", "2024-03-08"]
    assert shown(instance) == days


def test_what_somebody_added_out_of_order_is_put_in_order(instance, ui: Any) -> None:
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-07"])
    asked = {"key": "2023-01-01", "name": DAYS.name}
    said = query(ui, ADD, asked).data["addDynamicPartition"]
    assert said["__typename"] == "AddDynamicPartitionSuccess"
    show_partitions(instance, DAYS, ["2024-03-06"])
    assert shown(instance) == ["2023-01-01", "2024-03-05", "2024-03-06", "2024-03-07"]


def test_a_range_of_what_somebody_added_out_of_order_is_what_the_ui_means_by_it(
    instance,
) -> None:
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-07"])
    instance.add_dynamic_partitions(DAYS.name, ["2023-01-01"])
    of_ui(instance, "2024-03-07", "2023-01-01")
    assert instance.get_materialized_partitions(KEY) == {"2024-03-07", "2023-01-01"}


def test_another_process_that_shows_the_same_at_once_is_no_error(instance, monkeypatch) -> None:
    show_partitions(instance, DAYS, ["2024-03-06"])
    add = instance.add_dynamic_partitions

    def too_late(name: str, keys: Sequence[str]) -> None:
        monkeypatch.undo()
        add(name, keys[:1])
        raise IntegrityError("INSERT", {}, Exception("UNIQUE constraint failed"))

    monkeypatch.setattr(instance, "add_dynamic_partitions", too_late)
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-04"])
    assert shown(instance) == ["2024-03-04", "2024-03-05", "2024-03-06"]


def test_of_a_range_that_the_ui_asks_for_what_it_shows_is_computed(instance) -> None:
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-07", "2024-03-12"])
    of_ui(instance, "2024-03-05", "2024-03-12")
    days = {"2024-03-05", "2024-03-07", "2024-03-12"}
    assert instance.get_materialized_partitions(KEY) == days


def test_a_command_computes_each_partition_of_its_range(instance) -> None:
    show_partitions(instance, DAYS, ["2024-03-05", "2024-03-07"])
    run(instance, "2024-03-05", "2024-03-07")
    days = ["2024-03-05", "2024-03-06", "2024-03-07"]
    assert instance.get_materialized_partitions(KEY) == {*days}
    assert shown(instance) == days


@pytest.mark.parametrize(
    "other",
    [
        by_day("day", since="2020-01-02", time_zone="UTC"),
        by_day("day", since="2020-01-01", time_zone="Asia/Tokyo"),
        by_month("day", since="2020-01-01", time_zone="UTC"),
        by_hour("at", since="2020-01-01", time_zone="UTC"),
    ],
)
def test_other_windows_are_shown_by_themselves(other) -> None:
    others = table_partitions(IcebergTable("silver.others", "Others.", COLUMNS, other))
    assert others != DAYS
    assert others.name != DAYS.name


def test_windows_that_are_equal_are_shown_together() -> None:
    like = IcebergTable("gold.visits", "Visits.", COLUMNS, by_day("day", like=VISITS))
    assert table_partitions(like) == DAYS
    assert table_partitions(like).name == DAYS.name == "daily since 2020-01-01, UTC"


@pytest.mark.long
def test_partitions_that_hold_rows_are_shown(settings: Settings, instance) -> None:
    engine, graph = open_engine(settings), asset_graph(defs)
    days = [date(2024, 3, 7), date(2021, 12, 31), date(2024, 3, 7)]
    rows = pa.table({"day": pa.array(days, pa.date32()), "at": pa.nulls(3, pa.timestamp("us"))})
    show_existing(instance, graph, engine.catalog, [VISITS])
    assert shown(instance) == []

    client = engine.catalog.client
    client.create_namespace("silver")
    table = client.create_table("silver.visits", rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(rows)
    for _ in range(2):
        show_existing(instance, graph, engine.catalog, [VISITS])
        assert shown(instance) == ["2021-12-31", "2024-03-07"]


def test_partitions_that_the_files_do_not_tell_are_not_shown(
    settings: Settings, instance
) -> None:
    engine = open_engine(settings)
    client = engine.catalog.client
    client.create_namespace("silver")
    rows = pa.table({"day": pa.array([date(2024, 3, 7)], pa.date32())})
    client.create_table("silver.visits", rows.schema).append(rows)
    show_existing(instance, asset_graph(defs), engine.catalog, [VISITS])
    assert shown(instance) == []


def test_those_of_other_definitions_are_left_to_dagster(instance) -> None:
    show_partitions(instance, dg.DailyPartitionsDefinition("2024-01-01"), ["2024-03-07"])
    assert not isinstance(dg.DailyPartitionsDefinition("2024-01-01"), WindowsWithRows)
    assert shown(instance) == []


def test_a_run_of_what_is_no_window_of_the_table_says_which_there_are(
    settings: Settings, instance
) -> None:
    @iceberg_asset(VISITS)
    def made():
        raise NotImplementedError

    io = IcebergIOManager(engine=open_engine(settings), declared={})
    of_table = dg.Definitions([made], resources={"io_manager": io})
    # As the UI does with what somebody added.
    tags = {"dagster/partition": "2019-12-31"}
    ran = materialize(of_table, instance, dg.AssetSelection.all(), tags=tags)
    assert not ran.success
    assert "no partition '2019-12-31'; expected one of 2020-01-01 to" in ran.messages[0]
