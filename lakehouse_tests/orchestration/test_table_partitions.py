"""Tables that are written by hours, days or months, as partitioned assets of Dagster."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import latest
from lakehouse.orchestration.dagster_internals import DEFERS_ASSET_EVENTS
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.partitions.partition_bounds import only_tags, table_partitions
from lakehouse.tables.table import Column, IcebergTable, Overwrite, by_day, by_hour, by_month

ZONE = "Asia/Kuala_Lumpur"
COLUMNS = [Column("day", "date"), Column("at", "timestamp"), Column("v", "int")]
WRITES = {
    "hour": by_hour("at", since="2024-01-31T08:00", time_zone=ZONE),
    "day": by_day("day", since="2024-01-31", time_zone=ZONE),
    "month": by_month("day", since="2024-01-31", time_zone=ZONE),
}


def table(write, name="silver.t"):
    return IcebergTable(name, "t", COLUMNS, write)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("unit", "first"),
    [("hour", "2024-01-31-08:00"), ("day", "2024-01-31"), ("month", "2024-01-01")],
)
def test_the_first_partition_is_that_of_since_and_the_last_the_current_one(unit, first):
    definition = table_partitions(table(WRITES[unit]))
    before = datetime.now(UTC)
    last = definition.get_last_partition_window()

    assert definition.get_first_partition_key() == first
    assert last.start <= datetime.now(UTC)
    assert before < last.end


@pytest.mark.unit
def test_an_asset_has_the_partitions_of_its_table():
    @iceberg_asset(table(WRITES["month"]))
    def made():
        raise NotImplementedError

    assert made.partitions_def == table_partitions(table(WRITES["month"]))


@pytest.mark.unit
def test_partitions_that_both_the_table_and_the_asset_say_are_rejected():
    with pytest.raises(
        DeclarationError, match=r"silver\.t is written by each day, and its asset has a partit"
    ):
        iceberg_asset(
            table(WRITES["day"]), partitions_def=dg.DailyPartitionsDefinition("2024-01-31")
        )


@pytest.mark.parametrize(
    ("unit", "keys", "moments"),
    [
        (
            "hour",
            ("2024-01-31-08:00", "2024-01-31-09:00"),
            ["2024-01-31 00:00", "2024-01-31 01:59"],
        ),
        ("day", ("2024-01-31", "2024-02-01"), ["2024-01-31 00:00", "2024-02-01 00:00"]),
        ("month", ("2024-01-01", "2024-02-01"), ["2024-01-31 00:00", "2024-02-29 00:00"]),
    ],
)
def test_a_run_replaces_its_windows_and_no_others(build, embedded_engine, unit, keys, moments):
    given = {"v": 1, "moments": moments}

    @iceberg_asset(table(WRITES[unit]))
    def made():
        rows = ", ".join(f"(TIMESTAMP '{moment}:00Z')" for moment in given["moments"])
        return embedded_engine.sql(
            f"SELECT CAST(at AS date) AS day, at, {given['v']} AS v FROM VALUES {rows} AS t(at)"
        )

    build(made, partition=keys)
    given.update(v=2, moments=moments[1:])
    result = build(made, partition=keys[1])

    assert result.success, result.messages
    assert values(embedded_engine, "silver.t") == [1, 2]


def test_tables_are_read_as_such_and_by_the_windows_of_one_another(build, embedded_engine):
    source = table(WRITES["day"])
    by_month_too = IcebergTable("gold.months", "m", COLUMNS, by_month("day", like=source))
    whole = table(Overwrite(), "gold.whole")

    @iceberg_asset(source)
    def made():
        return embedded_engine.sql("SELECT DATE '2024-01-31' AS day, now() AS at, 1 AS v")

    @iceberg_asset(by_month_too, inputs={"rows": latest(source, by="day")})
    def months(rows):
        return rows.selectExpr("day", "at", "v + 1 AS v")

    @iceberg_asset(whole, inputs={"rows": source, "others": by_month_too})
    def both(rows, others):
        return rows.union(others)

    build(made, partition="2024-01-31")
    build(made, months, selection=dg.AssetSelection.assets(months.key), partition="2024-01-01")
    result = build(made, months, both, selection=dg.AssetSelection.assets(both.key))

    assert result.success, result.messages
    assert values(embedded_engine, "gold.whole") == [1, 2]
    assert {key.to_user_string() for key in both.asset_deps[both.key]} == {
        "silver/t",
        "gold/months",
    }


def test_a_run_with_gaps_reports_the_partitions_that_it_computed(
    build, embedded_engine, instance
):
    @iceberg_asset(table(WRITES["day"]))
    def made():
        rows = "(DATE '2024-02-01', 1), (DATE '2024-02-03', 2), (DATE '2024-02-03', 3)"
        return embedded_engine.sql(
            f"SELECT day, now() AS at, v FROM VALUES {rows} AS t (day, v)"
        )

    gaps = [("2024-02-01", "2024-02-01"), ("2024-02-03", "2024-02-03")]
    tags = {**only_tags(gaps), **DEFERS_ASSET_EVENTS}
    result = build(made, partition=("2024-02-01", "2024-02-03"), tags=tags)

    assert result.success, result.messages
    events = instance.fetch_materializations(made.key, limit=10).records
    reported = {event.partition_key: event.asset_materialization for event in events}
    counts = {
        key: done.metadata["dagster/partition_row_count"].value
        for key, done in reported.items()
    }
    assert counts == {"2024-02-01": 1, "2024-02-03": 2}
    version = result_snapshot(embedded_engine)
    assert {done.tags["dagster/data_version"] for done in reported.values()} == {version}


def result_snapshot(engine) -> str:
    snapshot = engine.catalog.load("silver.t").current_snapshot()
    assert snapshot is not None
    return str(snapshot.snapshot_id)


def values(engine, name):
    found = engine.sql(f"SELECT v FROM {engine.catalog.sql_name(name)} ORDER BY v")
    return [row.v for row in found.collect()]
