"""How many partitions a spec makes is told from the files that are there, and `plan` warns of
many tiny ones.
"""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from lakehouse.definitions import defs
from lakehouse.iceberg.evolve.partition_count import count_partitions
from lakehouse.iceberg.evolve.planning import apply, ensure, plan, plan_now
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.table_size import TableSize, read_table_size
from lakehouse.orchestration.asset_inputs import partitions_read
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.tables.partitioning import PartitionField
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions
from lakehouse_tests.iceberg.evolving import NAME, columns, declared, state_like

ROWS = 1_000_000
COLUMNS = columns(
    id="bigint", zip="string", amount="decimal(10,2)", ts="timestamp", d="date", flag="boolean"
)
BY_DAY = PartitionField.parse("d")
FIRST = date(2024, 1, 1)
MOMENT = 1_704_067_200_000_000


def table_size(
    days: int = 0, rows: int = ROWS, size_bytes: int = 100_000_000, **bounds: tuple[int, int]
) -> TableSize:
    """A table by day, or by nothing."""
    partitions = [frozenset({(BY_DAY, FIRST + timedelta(at))}) for at in range(days)] or [
        frozenset()
    ]
    return TableSize(rows, size_bytes, frozenset(partitions), bounds)


@pytest.mark.parametrize(
    ("text", "bounds", "expected"),
    [
        ("bucket(16, zip)", {}, 16),
        ("id", {"id": (1, 5000)}, 5000),
        ("truncate(10, id)", {"id": (0, 4999)}, 500),
        ("amount", {"amount": (100, 199)}, 100),
        ("days(d)", {"d": (19_000, 19_029)}, 30),
        ("months(d)", {"d": (19_000, 19_360)}, 12),
        ("hours(ts)", {"ts": (MOMENT, MOMENT + 3 * 3_600_000_000)}, 4),
        ("years(ts)", {"ts": (MOMENT, MOMENT + 1)}, 1),
        ("flag", {}, 2),
        ("zip", {}, 1),
        ("id", {"id": (1, 10**12)}, ROWS),
    ],
)
def test_a_spec_to_come_is_counted_by_what_the_values_span(
    text: str, bounds: dict[str, Any], expected: int
) -> None:
    field = PartitionField.parse(text)
    types = {column.name: column.type for column in COLUMNS}
    found = count_partitions([field], [types[field.column]], table_size(**bounds))
    assert (found.partitions, found.is_exact) == (expected, False)


def test_a_field_that_all_files_follow_is_counted_in_them() -> None:
    fields = [BY_DAY, PartitionField.parse("bucket(10, id)")]
    assert count_partitions(fields, ["date", "bigint"], table_size(days=30)).partitions == 300
    assert count_partitions([BY_DAY], ["date"], table_size(days=30)).is_exact


def warnings(partitioning: list[str], found: TableSize, **parts: Any) -> tuple[str, ...]:
    table = declared(columns=COLUMNS, partitioning=partitioning, **parts)
    return plan(table, replace(state_like(table), size=found)).warnings


def test_a_spec_that_makes_many_tiny_partitions_is_warned_of_with_numbers_and_advice() -> None:
    assert warnings(
        ["d", "bucket(10, id)"], table_size(days=30, rows=6000, size_bytes=300 * 2048)
    ) == (
        (
            "silver.orders: partitioning by d, bucket(10, id) makes about 300 partitions of its"
            " 6000 rows, with 2 kB each on average; that many tiny files are slow to plan and"
            " to read. Leave out d, or declare months(d) in its place."
        ),
    )


@pytest.mark.parametrize(
    ("partitioning", "found", "advice"),
    [
        (
            ["hours(ts)"],
            table_size(ts=(MOMENT, MOMENT + 400 * 86_400_000_000)),
            "declare days(ts) in its place",
        ),
        (
            ["days(ts)"],
            table_size(ts=(MOMENT, MOMENT + 4000 * 86_400_000_000)),
            "declare months(ts) in its place",
        ),
        (["id"], table_size(id=(1, 5000)), "declare a bucket of id in its place"),
        (
            ["truncate(2, id)"],
            table_size(id=(1, 5000)),
            "declare a greater width than 2 in its place",
        ),
        (["bucket(5000, id)"], table_size(), "declare fewer buckets than 5000 in its place"),
    ],
)
def test_the_advice_is_a_coarser_transform(
    partitioning: list[str], found: TableSize, advice: str
) -> None:
    (warning,) = warnings(partitioning, found)
    assert advice in warning


@pytest.mark.parametrize(
    ("partitioning", "found", "parts"),
    [
        (["bucket(10, id)"], table_size(size_bytes=10), {}),
        (["bucket(500, id)"], table_size(size_bytes=10**9), {}),
        (["days(d)"], table_size(d=(19_000, 20_500)), {"write": OverwritePartitions(by="d")}),
        (["d"], table_size(rows=0), {}),
    ],
    ids=["few", "large", "what each run replaces", "empty"],
)
def test_other_specs_are_not_warned_of(
    partitioning: list[str], found: TableSize, parts: dict[str, Any]
) -> None:
    assert warnings(partitioning, found, **parts) == ()


def test_what_is_needed_is_not_advised_against() -> None:
    (warning,) = warnings(
        ["d", "bucket(10, id)"],
        table_size(days=30, size_bytes=300 * 2048),
        write=OverwritePartitions(by="d"),
    )
    assert "Leave out bucket(10, id), or declare fewer buckets than 10 in its place." in warning


@pytest.mark.parametrize(
    ("partitioning", "advice"),
    [
        (["d"], []),
        (["days(ts)"], []),
        (["d", "bucket(10, id)"], ["Leave out bucket(10, id)"]),
    ],
)
def test_a_column_that_other_tables_read_by_stays(
    partitioning: list[str], advice: list[str]
) -> None:
    table = declared(columns=COLUMNS, partitioning=partitioning)
    size = table_size(days=4000, size_bytes=10**6, ts=(MOMENT, MOMENT + 4000 * 86_400_000_000))
    state = replace(state_like(table), size=size)
    assert plan(table, state).warnings
    warned = plan(table, state, read_by={"d", "ts"}).warnings
    assert [text in warning for text, warning in zip(advice, warned, strict=True)] == [
        True for _ in advice
    ]


def test_partitions_that_other_tables_read_are_known() -> None:
    graph = asset_graph(defs)
    assert partitions_read(graph, "bronze.bnpl_transactions_raw") == {"_event_date"}
    assert partitions_read(graph, "gold.bnpl_daily_summary") == set()


def fill(engine: Engine, table: IcebergTable, rows: int) -> None:
    ensure(engine, table)
    engine.sql(
        f"INSERT INTO {engine.catalog.sql_name(NAME)} SELECT id, CAST(id AS STRING), -id / 2,"
        " timestamp_seconds(1704067200 + id * 3600), date_add(DATE'2024-01-01', CAST(id AS"
        f" INT)), id % 2 = 0 FROM range({rows})"
    )


@pytest.mark.spark
def test_plan_warns_before_a_spec_is_applied_and_while_it_stands(
    embedded_engine: Engine,
) -> None:
    fill(embedded_engine, declared(columns=COLUMNS), 150)
    after = declared(columns=COLUMNS, partitioning=["id"])
    (before,) = plan_now(embedded_engine, after).warnings
    assert (
        "partitioning by id makes about 150 partitions of its 150 rows, with 1 kB each"
        in before
    )
    assert apply(embedded_engine, after).warnings == (before,)
    name = embedded_engine.catalog.sql_name(NAME)
    embedded_engine.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name}")
    (standing,) = plan_now(embedded_engine, after).warnings
    assert "partitioning by id makes 150 partitions" in standing


@pytest.mark.spark
def test_the_size_is_what_the_table_holds(embedded_engine: Engine) -> None:
    fill(embedded_engine, declared(columns=COLUMNS, partitioning=["bucket(2, id)"]), 48)
    found = read_table_size(embedded_engine.catalog.load(NAME))
    assert (found.rows, len(found.partitions)) == (48, 2)
    assert {name: found.bounds[name] for name in ("id", "amount", "d")} == {
        "id": (0, 47),
        "amount": (-2350, 0),
        "d": (19723, 19770),
    }
    assert found.bounds["ts"] == (MOMENT, MOMENT + 47 * 3_600_000_000)


@pytest.mark.spark
def test_bounds_of_files_from_before_a_column_was_widened_count(
    embedded_engine: Engine,
) -> None:
    ensure(embedded_engine, declared(columns=[Column("id", "int")]))
    name = embedded_engine.catalog.sql_name(NAME)
    embedded_engine.sql(f"INSERT INTO {name} VALUES (-7)")
    apply(embedded_engine, declared(columns=[Column("id", "bigint")]))
    embedded_engine.sql(f"INSERT INTO {name} VALUES (3000000000)")
    assert read_table_size(embedded_engine.catalog.load(NAME)).bounds == {
        "id": (-7, 3_000_000_000)
    }
