"""Ordinary tables are healthy; an ill one warns, and a very ill one is an error; without Spark."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.measured_health import (
    PartitionHealth,
    PartitionKey,
    TableHealth,
)
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.health import (
    DEFAULT_RULES,
    HealthRule,
    deleted_rows,
    kept_snapshots,
    needless_files,
    needless_manifests,
    stray_branches,
)
from lakehouse.maintenance.health_checks import (
    HEALTHY,
    evaluate_health,
    health_checks,
    health_result,
)
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable

ORDERS = IcebergTable(
    "silver.orders", "Orders.", [Column("id", "bigint")], write=Append(once_by=())
)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MB = 2**20


def no_spark() -> None:
    raise AssertionError("Spark was started")


@pytest.fixture
def engine(settings: Settings) -> Engine:
    """`silver.orders`, of two files."""
    catalog = Catalog.of(settings)
    catalog.client.create_namespace("silver")
    orders = catalog.client.create_table(ORDERS.name, Schema(NestedField(1, "id", LongType())))
    for number in range(2):
        orders.append(pa.table({"id": [number]}))
    return Engine(catalog, no_spark, settings.lock_dir, masking_key=b"testing")


def orders(engine: Engine) -> Table:
    return engine.catalog.load(ORDERS.name)


def measured(*partitions: PartitionHealth, **parts) -> TableHealth:
    return TableHealth(ORDERS.name, NOW, "m", 1, 2, 0, 128 * MB, partitions, **parts)


def partition(value: int, **parts) -> PartitionHealth:
    sizes = {
        "rows": 100,
        "data_files": 1,
        "data_bytes": MB,
        "small_files": 1,
        "small_bytes": MB,
    }
    return PartitionHealth(PartitionKey(0, (("id", value),)), **sizes | parts)


def result(rule: HealthRule, health: TableHealth, engine: Engine) -> RuleResult:
    """Return what a rule says of a table in this health."""
    history = read_history(engine, ORDERS.name)
    evaluated = EvaluatedSnapshot(engine, ORDERS, history, history.main, now=NOW)
    evaluated.__dict__["health"] = health
    return rule.snapshot_result(evaluated)


def check(results: Sequence[RuleResult]) -> tuple[bool, str]:
    made = health_result(ORDERS, results)
    return made.passed, made.severity.value


def test_an_ordinary_table_is_healthy(engine: Engine) -> None:
    results = evaluate_health(engine, ORDERS)
    assert [found.rule for found in results] == list(DEFAULT_RULES)
    assert check(results) == (True, "WARN")
    metadata = health_result(ORDERS, results).metadata
    assert metadata["needless_files"] == dg.FloatMetadataValue(1.0)
    assert metadata["kept_snapshots"] == dg.FloatMetadataValue(2.0)


@pytest.mark.parametrize(
    ("small", "deletes", "outcome"),
    [
        (51, 0, (True, "WARN")),
        (52, 0, (False, "WARN")),
        (26, 26, (False, "WARN")),
        (501, 0, (False, "WARN")),
        (501, 1, (False, "ERROR")),
    ],
)
def test_files_that_are_opened_for_nothing_are_of_the_worst_partition(
    engine: Engine, small: int, deletes: int, outcome: tuple[bool, str]
) -> None:
    worst = partition(7, data_files=small, small_files=small, delete_files=deletes)
    found = result(needless_files(), measured(partition(1), worst, partition(9)), engine)
    assert (found.value, found.note) == (small - 1 + deletes, "id=7")
    assert check([found]) == outcome


@pytest.mark.parametrize(
    ("deleted", "outcome"),
    [
        (20, (True, "WARN")),
        (21, (False, "WARN")),
        (50, (False, "WARN")),
        (51, (False, "ERROR")),
    ],
)
def test_rows_that_deletes_take_off_are_a_share(
    engine: Engine, deleted: int, outcome: tuple[bool, str]
) -> None:
    found = result(deleted_rows(), measured(partition(1, deleted_rows=deleted)), engine)
    assert (found.value, found.note) == (deleted / 100, f"{deleted} of 100 rows")
    assert check([found]) == outcome


def test_a_table_without_rows_has_no_share(engine: Engine) -> None:
    assert result(deleted_rows(), measured(), engine).value is None


def test_snapshots_are_counted(engine: Engine) -> None:
    found = [
        result(kept_snapshots(bound, warn_above=warn), measured(), engine)
        for bound, warn in ((2, 2), (2, 1), (1, None))
    ]
    assert [check([one]) for one in found] == [
        (True, "WARN"),
        (False, "WARN"),
        (False, "ERROR"),
    ]


def test_manifests_are_needless_beyond_their_size(engine: Engine) -> None:
    for manifests, size, needless in ((300, MB, 299), (300, 300 * 8 * MB, 0)):
        health = measured(partition(1), manifests=manifests, manifest_bytes=size)
        assert result(needless_manifests(), health, engine).value == needless


@pytest.mark.parametrize(
    ("branch", "age", "is_stray"),
    [
        ("audit", timedelta(hours=1), False),
        ("audit", timedelta(days=3), True),
        ("refused", timedelta(days=7), False),
        ("refused", timedelta(days=9), True),
    ],
)
def test_branches_of_dead_writers_and_old_refusals_are_stray(
    engine: Engine, branch: str, age: timedelta, is_stray: bool
) -> None:
    began = int((NOW - age).timestamp() * 1000)
    name = f"{branch}_{began:012x}{secrets.token_hex(10)}"
    table = orders(engine)
    with table.manage_snapshots() as change:
        change.create_branch(table.current_snapshot().snapshot_id, name)
        change.create_branch(table.current_snapshot().snapshot_id, "side")
    found = result(stray_branches(), measured(), engine)
    assert (found.value, found.note) == ((1, name) if is_stray else (0, ""))
    assert check([found]) == (not is_stray, "WARN")


def test_a_rule_that_a_table_declares_is_left_to_its_own_check(engine: Engine) -> None:
    stricter = replace(ORDERS, rules=[needless_files(0, warn_above=None)])
    assert "needless_files" not in {
        found.rule.name for found in evaluate_health(engine, stricter)
    }


def run(engine: Engine, *, asset: bool) -> dg.ExecuteInProcessResult:
    @dg.asset(key=asset_key(ORDERS.name))
    def written() -> None: ...

    definitions = dg.Definitions(
        assets=[written],
        asset_checks=health_checks({ORDERS.name: ORDERS}),
        resources={"engine": engine},
        jobs=[dg.define_asset_job("all", dg.AssetSelection.all())],
    )
    job = definitions.resolve_job_def("all")
    checks = {dg.AssetCheckKey(asset_key(ORDERS.name), HEALTHY)}
    selected = [asset_key(ORDERS.name)] if asset else []
    return job.get_subset(
        asset_selection=set(selected), asset_check_selection=checks
    ).execute_in_process(asset_selection=selected or None)


@pytest.mark.parametrize("asset", [False, True])
def test_a_run_that_selects_the_check_evaluates_it(engine: Engine, asset: bool) -> None:
    """Without a result, the UI would show it as failed where a run of assets fails."""
    (evaluation,) = run(engine, asset=asset).get_asset_check_evaluations()
    assert (evaluation.check_name, evaluation.passed, evaluation.blocking) == (
        HEALTHY,
        True,
        False,
    )


def test_a_table_that_is_not_there_has_no_result(engine: Engine) -> None:
    engine.catalog.client.drop_table(ORDERS.name)
    alone = run(engine, asset=False)
    assert alone.success and alone.get_asset_check_evaluations() == []
