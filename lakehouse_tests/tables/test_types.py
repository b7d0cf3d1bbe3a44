"""Column types, parsed and written back as Spark writes them."""

import pytest
from hypothesis import strategies as st

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.metadata.table_state import read_state
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.tables.type_promotion import is_wider, leaf_paths
from lakehouse.tables.types import (
    Array,
    ColumnType,
    Decimal,
    Field,
    Map,
    Primitive,
    Struct,
    parse,
)

PRIMITIVES = [
    "boolean",
    "int",
    "bigint",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "string",
    "binary",
]


def types() -> st.SearchStrategy[ColumnType]:
    """Any type that can be declared; names of fields may be anything but empty."""
    decimals = st.integers(1, 38).flatmap(
        lambda digits: st.builds(Decimal, st.just(digits), st.integers(0, digits))
    )
    names = st.text(min_size=1, max_size=8)

    def nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
        fields = st.lists(st.builds(Field, names, inner), min_size=1, max_size=3).map(tuple)
        return (
            st.builds(Array, inner) | st.builds(Map, inner, inner) | st.builds(Struct, fields)
        )

    return st.recursive(
        st.sampled_from(PRIMITIVES).map(Primitive) | decimals, nested, max_leaves=6
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("INTEGER", "int"),
        ("long", "bigint"),
        ("timestamp_ltz", "timestamp"),
        ("numeric( 10 , 2 )", "decimal(10,2)"),
        ("decimal", "decimal(10,0)"),
        ("decimal(5)", "decimal(5,0)"),
        (" struct< a : int , b : array< string > > ", "struct<a:int,b:array<string>>"),
        ("map<string,struct<`a b`:int>>", "map<string,struct<`a b`:int>>"),
    ],
)
def test_a_type_is_written_in_one_way(written: str, meant: str) -> None:
    assert str(parse(written)) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "int int",
        "array<int",
        "array<>",
        "map<int>",
        "struct<>",
        "struct<a>",
        "decimal(39,2)",
        "decimal(2,3)",
        "decimal(x)",
        "decimal(10,2",
        "int;",
        "struct<a:int,>",
        "varchar(10)",
    ],
)
def test_what_is_no_type_is_named_with_those_that_exist(text: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        parse(text)
    assert f"{text!r} is not a column type; expected" in str(raised.value)
    assert "timestamp_ntz, decimal(p,s), array<…>, map<…,…> or struct<name:…>." in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("have", "want", "widens"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("int", "double", False),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("int", "int", False),
        ("decimal(9,2)", "decimal(5,2)", False),
        ("date", "timestamp", False),
        ("array<int>", "array<bigint>", False),
    ],
)
def test_a_wider_type_holds_all_values(have: str, want: str, widens: bool) -> None:
    assert is_wider(parse(want), parse(have)) == widens


def test_values_are_in_the_leaves_of_a_type() -> None:
    column_type = parse("struct<a:int,b:array<struct<c:string>>,m:map<string,date>>")
    assert list(leaf_paths(column_type, "x")) == [
        "x.a",
        "x.b.element.c",
        "x.m.key",
        "x.m.value",
    ]


def test_each_type_is_in_the_table_what_it_is_in_the_declaration(engine: Engine) -> None:
    written = [
        *PRIMITIVES,
        "decimal(38,10)",
        "array<array<int>>",
        "map<string,map<int,date>>",
        "struct<`a b`:int,s:struct<x:decimal(9,0)>,l:array<struct<y:timestamp_ntz>>>",
    ]
    table = IcebergTable(
        name="silver.types",
        comment="All of them.",
        write=Append(),
        columns=[Column(f"c{number}", text) for number, text in enumerate(written)]
        + [Column("_source_file", "string"), Column("_source_sha256", "string")],
    )
    ensure(engine, table)
    found = [str(column.type) for column in read_state(engine, table.name).columns]
    assert found == [*written, "string", "string"]
