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

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.measured_health import (
    PartitionHealth,
    PartitionKey,
    TableHealth,
)
from lakehouse.iceberg.metadata.snapshots import read_history
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
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.upkeep.health_checks import (
    HEALTHY,
    evaluate_health,
    health_checks,
    health_result,
)

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


def small_files(files: int, deletes: int = 0) -> TableHealth:
    worst = partition(7, data_files=files, small_files=files, delete_files=deletes)
    return measured(partition(1), worst, partition(9))


def manifests(count: int, size_bytes: int) -> TableHealth:
    return measured(partition(1), manifests=count, manifest_bytes=size_bytes)


@pytest.mark.parametrize(
    ("rule", "health", "value", "outcome"),
    [
        (needless_files(), small_files(51), 50, (True, "WARN")),
        (needless_files(), small_files(26, deletes=26), 51, (False, "WARN")),
        (needless_files(), small_files(501, deletes=1), 501, (False, "ERROR")),
        (deleted_rows(), measured(partition(1, deleted_rows=20)), 0.2, (True, "WARN")),
        (deleted_rows(), measured(partition(1, deleted_rows=21)), 0.21, (False, "WARN")),
        (deleted_rows(), measured(partition(1, deleted_rows=51)), 0.51, (False, "ERROR")),
        (kept_snapshots(2, warn_above=2), measured(), 2, (True, "WARN")),
        (kept_snapshots(2, warn_above=1), measured(), 2, (False, "WARN")),
        (kept_snapshots(1, warn_above=None), measured(), 2, (False, "ERROR")),
        (needless_manifests(), manifests(300, MB), 299, (False, "WARN")),
        (needless_manifests(), manifests(300, 300 * 8 * MB), 0, (True, "WARN")),
    ],
)
def test_a_metric_above_its_limit_warns_and_far_above_is_an_error(
    engine: Engine,
    rule: HealthRule,
    health: TableHealth,
    value: float,
    outcome: tuple[bool, str],
) -> None:
    evaluated = result(rule, health, engine)
    assert evaluated.value == value
    assert check([evaluated]) == outcome


def test_a_table_without_rows_has_no_share_of_deleted_rows(engine: Engine) -> None:
    assert result(deleted_rows(), measured(), engine).value is None


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


def run(engine: Engine) -> dg.ExecuteInProcessResult:
    """Run the table's asset with its check."""

    @dg.asset(key=asset_key(ORDERS.name))
    def written() -> None: ...

    definitions = dg.Definitions(
        assets=[written],
        asset_checks=health_checks({ORDERS.name: ORDERS}),
        resources={"engine": engine},
        jobs=[dg.define_asset_job("all", dg.AssetSelection.all())],
    )
    return definitions.resolve_job_def("all").execute_in_process()


def test_a_run_that_selects_the_check_evaluates_it(engine: Engine) -> None:
    (evaluation,) = run(engine).get_asset_check_evaluations()
    assert (evaluation.check_name, evaluation.passed, evaluation.blocking) == (
        HEALTHY,
        True,
        False,
    )


def test_a_table_that_does_not_exist_has_no_result(engine: Engine) -> None:
    engine.catalog.client.drop_table(ORDERS.name)
    ran = run(engine)
    assert ran.success and ran.get_asset_check_evaluations() == []
