"""Ordinary tables are healthy; an ill one warns, and a very ill one is an error; without Spark."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.measured_health import (
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
from lakehouse_tests.upkeep.sick_tables import MB, NOW, partition, table
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

ORDERS = IcebergTable(
    "silver.orders", "Orders.", [Column("id", "bigint")], write=Append(once_by=())
)


@pytest.fixture
def engine(settings: Settings) -> Engine:
    """`silver.orders`, of two files."""
    made = engine_without_spark(settings)
    create_numbers(made, ORDERS.name, [[0], [1]])
    return made


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
    worst = partition(7, small=files, small_bytes=MB, data_bytes=MB, delete_files=deletes)
    return table(ORDERS.name, partition(1, small=1), worst, partition(9, small=1))


def manifests(count: int, size_bytes: int) -> TableHealth:
    return table(ORDERS.name, partition(1), manifests=count, manifest_bytes=size_bytes)


def deleted(rows: int) -> TableHealth:
    return table(ORDERS.name, partition(1, rows=100, deleted_rows=rows))


@pytest.mark.parametrize(
    ("rule", "health", "value", "outcome"),
    [
        (needless_files(), small_files(51), 50, (True, "WARN")),
        (needless_files(), small_files(26, deletes=26), 51, (False, "WARN")),
        (needless_files(), small_files(501, deletes=1), 501, (False, "ERROR")),
        (deleted_rows(), deleted(20), 0.2, (True, "WARN")),
        (deleted_rows(), deleted(21), 0.21, (False, "WARN")),
        (deleted_rows(), deleted(51), 0.51, (False, "ERROR")),
        (kept_snapshots(2, warn_above=2), table(ORDERS.name), 2, (True, "WARN")),
        (kept_snapshots(2, warn_above=1), table(ORDERS.name), 2, (False, "WARN")),
        (kept_snapshots(1, warn_above=None), table(ORDERS.name), 2, (False, "ERROR")),
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
    assert result(deleted_rows(), table(ORDERS.name), engine).value is None


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
    loaded = engine.catalog.load(ORDERS.name)
    with loaded.manage_snapshots() as change:
        for branch_name in (name, "side"):
            change.create_branch(loaded.current_snapshot().snapshot_id, branch_name)
    found = result(stray_branches(), table(ORDERS.name), engine)
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
