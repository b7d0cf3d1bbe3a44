"""What evolution refuses, and what it says; each refusal leaves the table as it is."""

import pytest

from lakehouse.errors import EvolutionRefused
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure, plan
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.conftest import whatever_the_catalog, with_format_3
from lakehouse_tests.iceberg.evolving import columns, declared, state_like


def of(**types: str | Column) -> IcebergTable:
    return declared(columns=columns(**types))


REFUSED = {
    "narrowing": (
        of(a="bigint"),
        of(a="int"),
        (
            "silver.orders: column a is bigint in the table and int in the declaration;"
            " narrowing would lose values. Declare it bigint again, or add a column of type int"
            " under another name and fill it from this one."
        ),
    ),
    "narrower decimal": (
        of(a="decimal(12,2)"),
        of(a="decimal(10,2)"),
        "decimal(12,2) in the table and decimal(10,2)",
    ),
    "other scale": (
        of(a="decimal(10,2)"),
        of(a="decimal(12,4)"),
        (
            "column a is decimal(10,2) in the table and decimal(12,4) in the declaration;"
            " Iceberg cannot change the scale"
        ),
    ),
    "other type": (
        of(a="string"),
        of(a="date"),
        "column a is string in the table and date in the declaration; ",
    ),
    "other elements": (
        of(a="array<string>"),
        of(a="array<int>"),
        "column a.element is string in the table and int in the declaration",
    ),
    "other keys": (
        of(a="map<int,string>"),
        of(a="map<bigint,string>"),
        "column a is map<int,string> in the table and map<bigint,string> in the declaration",
    ),
    "narrower field": (
        of(a="struct<b:bigint>"),
        of(a="struct<b:int>"),
        "column a.b is bigint in the table and int in the declaration",
    ),
    "left out": (
        of(a="int", b="date"),
        of(a="int"),
        (
            "silver.orders: column b is date in the table and absent in the declaration; an"
            ' undeclared column is not dropped. Declare it again, list it in dropped=["b"],'
            " or add it to renamed_from=… of its new name."
        ),
    ),
    "field left out": (
        of(s="struct<a:int,b:int>"),
        of(s="struct<a:int>"),
        'list it in dropped=["s.b"]',
    ),
    "required now": (
        of(a="int"),
        of(a=Column("a", "int", required=True)),
        (
            "column a is int in the table and int, required in the declaration; existing"
            " rows can have NULL there."
        ),
    ),
    "new and required": (
        of(a="int"),
        of(a="int", b=Column("b", "date", required=True)),
        (
            "column b is absent in the table and date, required in the declaration; existing"
            " rows would have NULL there."
        ),
    ),
    "renamed onto a column that is there": (
        of(a="int", b="int"),
        of(b=Column("b", "int", renamed_from="a")),
        (
            "column a is int in the table and the former name of b (int) in the declaration;"
            " the table already has both"
        ),
    ),
    "dropped from under the partitioning": (
        declared(columns=columns(a="int", b="string"), partitioning=["b"]),
        declared(columns=columns(a="int"), dropped=["b"]),
        (
            "column b is string in the table and dropped in the declaration; a partition spec"
            " of the table"
        ),
    ),
    "widened under the partitioning": (
        declared(columns=columns(a="int"), partitioning=["a"]),
        declared(columns=columns(a="bigint"), partitioning=["a"]),
        (
            "column a is int in the table and bigint in the declaration; the table is, or was,"
            " partitioned by its values"
        ),
    ),
    "older format": (
        declared(format_version=3),
        declared(format_version=2),
        (
            "the format version is 3 in the table and 2 in the declaration; a table does not go"
            " back to an older format."
        ),
    ),
}


@pytest.mark.parametrize(("before", "after", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_names_the_column_both_types_and_the_next_step(
    before: IcebergTable, after: IcebergTable, message: str
) -> None:
    (refusal,) = plan(after, state_like(before)).refusals
    assert message in str(refusal)
    assert refusal.next_step


@whatever_the_catalog
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param(*case, id=name, marks=[with_format_3] if name == "older format" else [])
        for name, case in REFUSED.items()
    ],
)
def test_a_refused_change_leaves_the_table_as_it_is(
    engine: Engine, before: IcebergTable, after: IcebergTable, message: str
) -> None:
    ensure(engine, before)
    engine.sql(
        f"INSERT INTO {engine.catalog.sql_name(before.name)} SELECT"
        f" {', '.join(['NULL'] * len(before.columns))}"
    )
    metadata = engine.catalog.load(before.name).metadata_location
    for change in (ensure, apply):
        with pytest.raises(EvolutionRefused) as raised:
            change(engine, after)
        assert message in str(raised.value)
    assert engine.catalog.load(before.name).metadata_location == metadata


def test_all_refusals_of_a_table_are_said_at_once() -> None:
    found = plan(of(a="int", b="string"), state_like(of(a="bigint", b="date", c="int")))
    assert [refusal.subject for refusal in found.refusals] == [
        "column a",
        "column b",
        "column c",
    ]
