"""What types a frame may have where its table declares others, or names that Spark quotes."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import between, castable
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.io_manager import inferred_table
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.iceberg.declarations import content

pytestmark = pytest.mark.spark
PERSON = "struct<`first name`:string,`a``b`:array<struct<`x.y`:int>>,`2`:map<string,int>>"


def person(name: str) -> str:
    parts = f"'first name', '{name}', 'a`b', array(named_struct('x.y', 1)), '2', map('k', 1)"
    return f"named_struct({parts})"


def rows(engine: Engine, *selected: str) -> Callable[..., DataFrame]:
    return lambda **_: engine.sql(" UNION ALL ".join(f"SELECT {row}" for row in selected))


def test_smaller_numbers_are_widened(embedded_engine: Engine) -> None:
    table = IcebergTable(
        "silver.small",
        "",
        [Column("v", "int"), Column("w", "bigint"), Column("s", "array<struct<v:int>>")],
        Append(once_by=()),
        rules=[between("v", low=1)],
    )
    terms = "CAST({} AS smallint) AS v, CAST({} AS tinyint) AS w, array(named_struct('v', {}Y)) AS s"
    write(
        embedded_engine, table, rows(embedded_engine, *(terms.format(v, v, v) for v in (0, 7)))
    )
    assert content(embedded_engine, table.name, "v", "w", "s[0].v") == [(7, 7, 7)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [("INTERVAL '1' DAY", "interval day"), ("array()", "array<void>")],
)
def test_a_type_that_no_table_has_is_rejected_with_its_column(
    embedded_engine: Engine, value: str, kind: str
) -> None:
    table = IcebergTable("silver.spans", "", [Column("v", "array<int>")], Append(once_by=()))
    with pytest.raises(FrameMismatch) as raised:
        write(embedded_engine, table, rows(embedded_engine, f"{value} AS v"))
    assert str(raised.value).startswith(
        f"silver.spans: column v is {kind} in the frame; expected array<int>"
    )


def test_a_column_of_nothing_takes_the_declared_type(embedded_engine: Engine) -> None:
    table = IcebergTable(
        "silver.nothing",
        "",
        [Column("id", "int"), Column("p", PERSON), Column("n", "bigint")],
        Append(once_by=()),
        rules=[castable("n", "bigint")],
    )
    write(embedded_engine, table, rows(embedded_engine, "1 AS id, NULL AS p, NULL AS n"))
    assert content(embedded_engine, table.name) == [(1, None, None)]


def test_a_table_that_nobody_declared_has_the_types_of_its_frame(
    embedded_engine: Engine,
) -> None:
    frame = embedded_engine.sql(f"SELECT {person('A')} AS p, 1S AS v")
    table = inferred_table("silver.inferred", "", frame.schema)
    write(embedded_engine, table, lambda: frame)
    assert content(embedded_engine, table.name, "p.`first name`", "v") == [("A", 1)]
