"""A declared table as a Dagster asset: published, refused, unchanged, and its checks alone."""

from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import as_of, existing_rows, incremental, latest, versions_of
from lakehouse.iceberg.values.write_result import Refused
from lakehouse.orchestration.failure_texts import blocked_failure
from lakehouse.orchestration.iceberg_asset import (
    check_overwrite_inputs,
    check_versions,
    iceberg_asset,
)
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Overwrite,
    OverwritePartitions,
    Versions,
)
from lakehouse_tests.orchestration.conftest import PEOPLE

SILVER = dg.AssetKey(["silver", "people"])
ANN, BOB = ("1", "Ann", "ann@example.org"), ("2", "Bob", "bob@example.org")
NOBODY = ("3", "nobody", "nobody@example.org")
BAD_ID = ("four", "Dan", "dan@example.org")


def test_a_published_write_is_a_materialization_with_its_numbers(project):
    result = project.deliver("first", ANN, BOB)

    assert result.success, result.messages
    found = result.asset("silver.people")
    assert found.status == "published"
    assert {
        name: found.metadata[name]
        for name in ("nr_rows", "dagster/row_count", "iceberg/inserted_rows")
    } == {
        "nr_rows": 2,
        "dagster/row_count": 2,
        "iceberg/inserted_rows": 2,
    }
    assert found.metadata["iceberg/snapshot_id"] == str(project.snapshot_id("silver.people"))
    assert found.metadata["dagster/table_name"].endswith(".silver.people")
    assert (
        found.metadata["dagster/uri"] == project.engine.catalog.load("silver.people").location()
    )
    assert project.downstream_runs == 1


@pytest.mark.long
def test_the_pins_of_the_inputs_are_shown(project):
    project.deliver("first", ANN)
    first = project.snapshot_id("bronze.raw_people")
    result = project.deliver("second", BOB)

    read = result.asset("silver.people").metadata["iceberg/inputs"]["raw_people"]
    assert read == {
        "table": "bronze.raw_people",
        "snapshot_id": str(project.snapshot_id("bronze.raw_people")),
        "since_snapshot_id": str(first),
        "rows": 1,
    }


def test_check_results_point_at_the_new_materialization(project):
    project.deliver("first", ANN)

    record = project.instance.get_latest_materialization_event(SILVER)
    (evaluation,) = _evaluations(project, "unique_name")
    assert evaluation.passed
    assert evaluation.target_materialization_data.storage_id
    assert evaluation.target_materialization_data.run_id == record.run_id


def test_a_blocked_delivery_is_a_failed_check_and_no_materialization(project):
    project.deliver("first", ANN)
    before, materialized = (
        project.snapshot_id("silver.people"),
        project.latest(["silver", "people"]),
    )
    result = project.deliver("second", BOB, NOBODY)

    assert not result.success
    assert result.asset("gold.after").status == "not run"
    assert project.downstream_runs == 1
    assert project.snapshot_id("silver.people") == before
    assert project.latest(["silver", "people"]) == materialized
    newest, _ = _evaluations(project, "excluded_name")
    assert not newest.passed
    assert newest.severity == dg.AssetCheckSeverity.ERROR
    shown = {name: value.value for name, value in newest.metadata.items() if name != "sample"}
    assert shown["evaluated"] == "candidate"
    assert (shown["failed_rows"], shown["total_rows"], shown["threshold"]) == (1, 2, 0.0)
    assert shown["branch"].startswith("refused_")
    assert shown["branch"] in project.engine.catalog.load("silver.people").metadata.refs


def test_a_blocked_write_names_the_rule_the_rows_and_one_of_them_masked(project):
    (message,) = project.deliver("first", BOB, NOBODY).messages

    assert message.startswith(
        "silver.people was not published: rule excluded_name (name is none of nobody) is broken"
        " by 1 of 2 rows, "
    )
    assert '"name": "6 characters: letters", "email": "masked:' in message
    assert "nobody@example.org" not in message


def test_a_blocked_write_is_not_retried():
    assert blocked_failure(Refused("silver.people", "w", None), "").allow_retries is False


def test_a_quarantined_row_warns_and_lets_the_rest_go_on(project):
    result = project.deliver("first", ANN, BAD_ID)

    assert result.success
    found = result.asset("silver.people").metadata
    assert (found["quarantined_rows"], found["newly_quarantined_rows"]) == (1, 1)
    assert found["quarantine_table"] == "silver.people_quarantine"
    (check,) = [check for check in result.checks if check.name == "castable_id"]
    assert (check.passed, check.severity) == (False, "WARN")
    assert check.metadata["sample"][0]["id"] == "4 characters: letters"
    assert check.metadata["sample"][0]["email"].startswith("masked:")


def test_a_quarantine_stands_in_the_graph_with_its_own_numbers(project):
    project.deliver("first", ANN, BAD_ID)

    found = project.latest(["silver", "people_quarantine"])
    assert found.metadata["nr_rows"].value == 1
    assert found.metadata["dagster/row_count"].value == 1
    spec = project.definitions.resolve_asset_graph().get(
        dg.AssetKey(["silver", "people_quarantine"])
    )
    assert spec.parent_keys == {SILVER}


def test_a_write_that_changes_nothing_keeps_the_version_and_lets_downstream_go_on(project):
    project.deliver("first", ANN)
    before = project.latest(["silver", "people"]).tags["dagster/data_version"]
    result = project.deliver("first", ANN)

    assert result.success
    assert result.asset("silver.people").status == "unchanged"
    assert result.asset("silver.people").metadata["nr_rows"] == 0
    assert project.latest(["silver", "people"]).tags["dagster/data_version"] == before
    assert project.downstream_runs == 2


@pytest.mark.long
def test_checks_alone_are_evaluated_on_main_and_write_nothing(project):
    project.deliver("first", ANN, BOB)
    before, materialized = (
        project.snapshot_id("silver.people"),
        project.latest(["silver", "people"]),
    )
    project.deliver("second", NOBODY)
    result = project.run(dg.AssetSelection.checks_for_assets(SILVER))

    assert result.success
    assert {check.name for check in result.checks} == {rule.name for rule in PEOPLE.rules}
    assert all(
        check.passed and check.metadata["evaluated"] == "main" for check in result.checks
    )
    assert {check.metadata["total_rows"] for check in result.checks} == {2}
    assert {check.metadata["snapshot_id"] for check in result.checks} == {str(before)}
    assert project.snapshot_id("silver.people") == before
    assert project.latest(["silver", "people"]) == materialized


def test_an_error_of_the_machine_is_no_bad_data(build, embedded_engine):
    @iceberg_asset(PEOPLE)
    def people():
        return embedded_engine.sql(
            "SELECT 1 AS id, 'Ann' AS name, raise_error('the disk is full') AS email"
        )

    result = build(people)

    assert not result.success
    assert result.checks == ()
    assert result.messages[0].startswith("silver.people: the rows of people (")
    # What an error of a table about people says may quote a row.
    assert (
        "USER_RAISED_EXCEPTION" in result.messages[0]
        and "the disk is full" not in result.messages[0]
    )


def test_declared_freshness_is_a_policy_of_the_asset():
    table = IcebergTable(
        "gold.t", "t", [Column("v", "int")], write=Overwrite(), freshness=timedelta(hours=2)
    )

    @iceberg_asset(table, inputs={"persons": latest("silver.people")})
    def t(persons):
        return persons

    (spec,) = t.specs
    assert spec.freshness_policy == dg.FreshnessPolicy.time_window(timedelta(hours=2))


def test_a_function_takes_what_its_inputs_are_called():
    table = IcebergTable("gold.t", "t", [Column("v", "int")], write=Overwrite())

    with pytest.raises(
        DeclarationError,
        match=r"gold\.t: the function t takes people; expected the inputs, persons",
    ):

        @iceberg_asset(table, inputs={"persons": latest("silver.people")})
        def t(people):
            return people


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"came": incremental("bronze.t", by="d")},
            "came has only their new rows; the existing rows",
        ),
        (
            {"came": existing_rows("silver.t", by="d")},
            r"came reads existing_rows of another table; expected gold\.t",
        ),
    ],
)
def test_rows_that_stand_in_a_partition_are_not_lost_by_a_declaration(inputs, message):
    mode = OverwritePartitions(by="d")
    table = IcebergTable(
        "gold.t", "t", [Column("d", "date")], partitioning=["days(d)"], write=mode
    )

    with pytest.raises(DeclarationError, match=message):

        @iceberg_asset(table, inputs=inputs)
        def t(came):
            return came


@pytest.mark.parametrize(
    ("mode", "inputs", "message"),
    [
        (Overwrite(), {"came": incremental("b.t")}, "the existing rows would be lost"),
        (
            OverwritePartitions(by="d"),
            {"all_rows": latest("b.t", by="d"), "came": incremental("b.other")},
            "would lose the new rows of other partitions",
        ),
    ],
)
def test_a_table_is_not_overwritten_by_what_came_alone(mode, inputs, message):
    table = IcebergTable(
        "gold.t", "t", [Column("d", "date")], partitioning=["days(d)"], write=mode
    )
    expected = (
        rf"gold\.t is overwritten, and its input came has only rows that arrived.*{message}"
    )

    with pytest.raises(DeclarationError, match=expected):
        check_overwrite_inputs(table, inputs)


BY_DAY = OverwritePartitions(by="d")
VERSIONS = Versions(of="k", newest="d")


@pytest.mark.parametrize(
    ("mode", "versions", "inputs", "message"),
    [
        (
            Append(once_by=()),
            VERSIONS,
            {"came": versions_of("b.t")},
            "is appended to.*expected Merge",
        ),
        (Overwrite(), None, {"came": versions_of("b.t")}, r"expected versions=Versions\(of=…"),
        (BY_DAY, None, {"came": versions_of("b.t", by="d")}, "what a version is"),
        (BY_DAY, VERSIONS, {"came": versions_of("b.t")}, r"partitions of d; expected by=…"),
        (
            BY_DAY,
            VERSIONS,
            {"came": versions_of("b.t", by="d"), "own": existing_rows("gold.t", by="d")},
            "read already; expected no input own",
        ),
    ],
)
def test_an_input_of_versions_is_rejected_where_none_could_be_picked(
    mode, versions, inputs, message
):
    columns = [Column("k", "string"), Column("d", "date")]
    table = IcebergTable(
        "gold.t", "t", columns, partitioning=["days(d)"], write=mode, versions=versions
    )

    with pytest.raises(
        DeclarationError, match=r"gold\.t: input came is versions_of.*" + message
    ):
        check_versions(table, inputs)


@pytest.mark.parametrize(
    "given", [incremental("bronze.raw"), latest("bronze.raw"), as_of("bronze.raw", tag="x")]
)
def test_an_append_from_another_table_needs_what_makes_a_row_happen_once(given):
    table = IcebergTable("gold.t", "t", [Column("v", "int")], write=Append(once_by=()))
    message = (
        r"gold\.t: Append\(once_by=\(\)\).*raw \(\w+ of"
        r" bronze\.raw\).*expected.*once_by=\('v',\)"
    )

    with pytest.raises(DeclarationError, match=message):

        @iceberg_asset(table, inputs={"raw": given})
        def t(raw):
            return raw


def _evaluations(project, check):
    records = project.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(SILVER, check), limit=10
    )
    events = [record.event.dagster_event for record in records]
    evaluated = [
        event for event in events if event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]
    return [event.asset_check_evaluation_data for event in evaluated]
