"""Evolutions of real tables: earlier rows by time travel, current rows in three engines."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure, plan_now
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.conftest import with_format_3
from lakehouse_tests.iceberg.evolving import columns, declared, of

Row = dict[str, Any]


@dataclass(frozen=True)
class Evolution:
    """A change of a declaration; `inserted` is SQL of `rows`, which read as `now` after it."""

    before: IcebergTable
    inserted: str
    rows: list[Row]
    after: IcebergTable
    now: list[Row]
    commits: bool = field(default=True)
    """Whether the schema changes, so that an empty commit must carry it."""


_REGIONS = columns(id="bigint", region="string")
_REGION_SQL = "VALUES (1, 'north'), (2, 'south')"
_REGION_ROWS: list[Row] = [{"id": 1, "region": "north"}, {"id": 2, "region": "south"}]


def _layout(before: dict[str, Any], after: dict[str, Any]) -> Evolution:
    return Evolution(
        declared(columns=_REGIONS, **before),
        _REGION_SQL,
        _REGION_ROWS,
        declared(columns=_REGIONS, **after),
        _REGION_ROWS,
        commits=False,
    )


EVOLUTIONS = {
    "column added, and another renamed whose name is used again": Evolution(
        of(id="int", note="string"),
        "VALUES (1, 'a')",
        [{"id": 1, "note": "a"}],
        of(
            id="int",
            amount="decimal(10,2)",
            remark=Column("remark", "string", renamed_from="note"),
            note="int",
        ),
        [{"id": 1, "amount": None, "remark": "a", "note": None}],
    ),
    "fields of structs added, widened and moved": Evolution(
        of(
            s="struct<a:int,b:struct<c:float>>",
            l="array<struct<a:int>>",
            m="map<string,struct<a:int>>",
        ),
        "SELECT named_struct('a', 1, 'b', named_struct('c', CAST(1.5 AS FLOAT))),"
        " array(named_struct('a', 2)), map('k', named_struct('a', 3))",
        [{"s": {"a": 1, "b": {"c": 1.5}}, "l": [{"a": 2}], "m": {"k": {"a": 3}}}],
        of(
            s="struct<b:struct<c:double,d:string>,a:bigint>",
            l="array<struct<n:date,a:bigint>>",
            m="map<string,struct<a:int,z:string>>",
        ),
        [
            {
                "s": {"b": {"c": 1.5, "d": None}, "a": 1},
                "l": [{"n": None, "a": 2}],
                "m": {"k": {"a": 3, "z": None}},
            }
        ],
    ),
    "names that need quotes": Evolution(
        of(**{"sélect `x`": "int", "from": "struct<`a b`:int>"}),
        "SELECT 1, named_struct('a b', 2)",
        [{"sélect `x`": 1, "from": {"a b": 2}}],
        of(
            **{
                "order by": Column("order by", "bigint", renamed_from="sélect `x`"),
                "from": "struct<`a b`:int,`c-d`:int>",
            }
        ),
        [{"order by": 1, "from": {"a b": 2, "c-d": None}}],
    ),
    "partition field replaced": _layout(
        {"partitioning": ["region"]}, {"partitioning": ["truncate(1, region)"]}
    ),
    "sort order set": _layout({}, {"sort_order": ["region desc nulls last", "bucket(4, id)"]}),
    "properties set, changed and unset": _layout(
        {"properties": {"read.split.target-size": "1000", "gone": "x"}},
        {
            "properties": {"read.split.target-size": "2000"},
            "target_file_mb": 64,
            "owner": "data",
        },
    ),
    "format upgraded": _layout({}, {"format_version": 3}),
}


GLUE_TOO = (
    "column added, and another renamed whose name is used again",
    "properties set, changed and unset",
)
"""Two that change what Glue stores; `make test-glue-catalog` runs all of them on Glue."""
STANDARD = (
    *GLUE_TOO,
    "fields of structs added, widened and moved",
    "partition field replaced",
    "sort order set",
    "format upgraded",
)
"""Those that differ most; the others run in `make test-all`."""


@pytest.mark.parametrize(
    ("engine", "evolution"),
    [
        pytest.param(
            catalog,
            evolution,
            id=f"{catalog}-{name}",
            marks=[
                *([with_format_3] if evolution.after.format_version == 3 else []),
                *([] if name in STANDARD else [pytest.mark.long]),
            ],
        )
        for name, evolution in EVOLUTIONS.items()
        for catalog in ("embedded", "glue")
        if catalog == "embedded" or name in GLUE_TOO
    ],
    indirect=["engine"],
)
def test_readers_of_old_and_new_snapshots_both_work(
    engine: Engine, evolution: Evolution
) -> None:
    name = engine.catalog.sql_name(evolution.before.name)
    ensure(engine, evolution.before)
    engine.sql(f"INSERT INTO {name} {evolution.inserted}")
    before = read_history(engine, evolution.before.name).main

    apply(engine, evolution.after, run_id="r1")

    assert plan_now(engine, evolution.after).is_empty
    assert spark_rows(
        engine, f"SELECT * FROM {name} VERSION AS OF {before.snapshot_id}"
    ) == ordered(evolution.rows)
    assert spark_rows(engine, f"SELECT * FROM {name}") == ordered(evolution.now)
    assert pyiceberg_rows(engine, evolution.after.name) == ordered(evolution.now)
    assert duckdb_rows(engine, evolution.after.name) == ordered(evolution.now)
    after = read_history(engine, evolution.before.name).main
    assert (after.snapshot_id != before.snapshot_id) == evolution.commits
    if evolution.commits:
        commit = (after.commit.kind, after.commit.run_id, after.rows)
        assert commit == ("evolution", "r1", len(evolution.rows))
        assert spark_rows(
            engine, f"SELECT * FROM {name} VERSION AS OF {after.snapshot_id}"
        ) == ordered(evolution.now)


def ordered(rows: list[Row]) -> list[list[tuple[str, Any]]]:
    """Return rows as pairs, so that the order of columns counts and that of rows does not."""
    return sorted((list(row.items()) for row in rows), key=repr)


def spark_rows(engine: Engine, query: str) -> list[list[tuple[str, Any]]]:
    return ordered([row.asDict(recursive=True) for row in engine.sql(query).collect()])


def pyiceberg_rows(engine: Engine, table: str) -> list[list[tuple[str, Any]]]:
    return ordered(
        engine.catalog.load(table).scan().to_arrow().to_pylist(maps_as_pydicts="strict")
    )


def duckdb_rows(engine: Engine, table: str) -> list[list[tuple[str, Any]]]:
    result = engine.catalog.load(table).scan().to_duckdb("t").execute("SELECT * FROM t")
    names = [column[0] for column in result.description]
    return ordered([dict(zip(names, row, strict=True)) for row in result.fetchall()])
