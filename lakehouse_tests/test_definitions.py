"""What the project defines, and that loading it starts nothing."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from lakehouse.definitions import TABLES, defs
from lakehouse.iceberg.read.rows_outside_partitions import HAS_PARTITION, has_partition
from lakehouse.orchestration.asset_checks import checked_rules, severity
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.project import execution
from lakehouse.quality.metrics.metric import NO_ANOMALY
from lakehouse.settings import TableJob

PROBE = """
import sys
import lakehouse.definitions
heavy = {"pyspark", "pyiceberg", "py4j", "pandas", "boto3", "dagster_pyspark"} & set(sys.modules)
print(*heavy)
"""


@pytest.mark.scenario
def test_loading_starts_nothing(tmp_path):
    """No Java on the path, no JAVA_HOME, no setting: only a Python that must not import what is
    heavy.
    """
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    found = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout.split() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.scenario
def test_loading_reads_no_environment(tmp_path):
    """A setting that is wrong is named when a run needs it, and hides nothing before."""
    wrong = os.environ | {"LAKEHOUSE_DEPLOYMENT": "moon"}
    found = subprocess.run(
        [sys.executable, "-c", "import lakehouse.definitions"], env=wrong, check=False
    )

    assert found.returncode == 0


def test_an_asset_is_named_as_its_table():
    keys = {tuple(spec.key.path) for spec in defs.resolve_all_asset_specs()}
    assert keys == {tuple(name.split(".")) for name in TABLES}


def test_each_sensor_and_schedule_is_on_by_default():
    repository = defs.get_repository_def()
    automations = [*repository.sensor_defs, *repository.schedule_defs]
    assert {"fruits_files", "upkeep_when_due"} <= {one.name for one in automations}
    assert [one.name for one in automations if one.default_status.value != "RUNNING"] == []


def test_an_asset_shows_what_its_declaration_says():
    spec = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}[
        "silver/fruits"
    ]

    assert spec.group_name == "silver"
    assert spec.kinds == {"iceberg", "spark", "silver"}
    assert spec.owners == ["team:data-platform"]
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["bronze", "raw_fruits"])]
    assert spec.description.startswith(
        "One row for each fruit, as last delivered, without Banana"
    )
    schema = spec.metadata["dagster/column_schema"]
    assert [(column.name, column.type) for column in schema.columns] == [
        ("id", "bigint"),
        ("fruit", "string"),
        ("berry", "boolean"),
        ("update_timestamp", "timestamp"),
    ]
    assert schema.columns[1].description == "Common name; the merge key."


def test_the_page_of_an_asset_leads_to_its_tables():
    specs = {table_name(spec.key): spec for spec in defs.resolve_all_asset_specs()}
    metadata = specs["silver.fruits"].metadata
    assert metadata["lakehouse/quarantine"] == dg.AssetKey(["silver", "fruits_quarantine"])
    assert metadata["lakehouse/contract"] == "lakehouse contract silver.fruits"


def test_a_run_is_one_process_unless_a_spark_server_is_shared(settings):
    assert execution(settings) == {"in_process": {}}
    shared = replace(settings, spark_remote="sc://127.0.0.1:15002")
    assert execution(shared) == {"multiprocess": {}}
    in_jobs = replace(shared, jobs=(TableJob("gold.*", "lakehouse"),))
    assert execution(in_jobs) == {"in_process": {}}


OF_THEIR_OWN = {NO_ANOMALY: "WARN warn"}
"""Severity of the worst result, and what comes of it, of checks that are no rule."""


def test_every_check_is_known_by_name_severity_and_whether_it_blocks():
    """Alerts, dashboards and scripts of users rely on them; `checks.txt` is changed by hand, and
    on purpose. It is of the tables of the samples, and those of the lakehouse itself.
    """
    golden = Path(__file__).with_name("checks.txt").read_text(encoding="utf-8").splitlines()
    # Tables that somebody adds to a copy have checks of their own, which are not told here.
    tables = {line.split(" ")[0] for line in golden}
    graph = defs.resolve_asset_graph()
    rules = {
        (table.name, rule.name): rule
        for table in TABLES.values()
        for rule in checked_rules(table)
    }
    rules |= {(table.name, HAS_PARTITION): has_partition(table) for table in TABLES.values()}
    found = []
    for key in graph.asset_check_keys:
        table = table_name(key.asset_key)
        rule = rules.get((table, key.name))
        of_its_own = OF_THEIR_OWN.get(key.name, "ERROR block")
        said = f"{severity(rule).value} {rule.on_failure}" if rule else of_its_own
        blocks = (
            "stops what is downstream"
            if graph.get_check_spec(key).blocking
            else "stops nothing"
        )
        if table in tables:
            found.append(f"{table} {key.name} {said}: {blocks}")
    assert sorted(found) == golden
