"""Tables that Spark wrote lose a person's rows, and Spark reads all others as they were."""

from dataclasses import replace

import pytest

from lakehouse.errors import SetupError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure import delete_rows as delete_rows_module
from lakehouse.iceberg.erasure.delete_rows import count_rows, delete_rows
from lakehouse.iceberg.erasure.remove_from_files import remove_from_files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.tables.person import Person
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.conftest import with_erased_format_3
from lakehouse_tests.iceberg.erasure.people import (
    ANNA,
    DELIVERED,
    DELIVERED_ROWS,
    ORDERS,
    REQUEST,
    fill,
)
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, NAME, create, rows

TABLE = IcebergTable(
    name="silver.visits",
    comment="Who came when.",
    columns=[Column("customer_id", "bigint"), Column("rest", "string")],
    write=Append(once_by=()),
    subject="customer_id",
)
COLUMNS = """customer_id bigint, at timestamp, wall timestamp_ntz, day date, price decimal(10,2),
 tags array<string>, marks map<string,int>, place struct<city:string,lat:double>, raw binary,
 share double, part int"""
ROWS = """SELECT id % 10 AS customer_id, timestamp_seconds(1.7e9 + id) AS at,
 TIMESTAMP_NTZ '2024-01-01 00:00:00' AS wall, date_add(DATE '2024-01-01', cast(id AS int)) AS day,
 cast(id / 3 AS decimal(10,2)) AS price, array('a', NULL) AS tags, map('x', cast(id AS int)) AS marks,
 named_struct('city', concat('c', id), 'lat', double('NaN')) AS place, cast(cast(id AS string) AS binary) AS raw,
 id / 7 AS share, cast(id % 2 AS int) AS part FROM range(100)"""
SEVEN = Person("customer_id", frozenset({"7"}))


def everyone_else(engine: Engine, version: str = "") -> str:
    frame = engine.sql(
        "SELECT hash_agg FROM (SELECT sum(crc32(cast(to_json(struct(*)) AS binary))) AS hash_agg"
        f" FROM {engine.catalog.sql_name(TABLE.name)} {version} WHERE customer_id <> 7)"
    )
    return str(frame.collect()[0][0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("format_version", "mode"),
    [
        ("2", "copy-on-write"),
        pytest.param("3", "merge-on-read", marks=with_erased_format_3),
        pytest.param("2", "merge-on-read", marks=pytest.mark.soak),
        pytest.param("3", "copy-on-write", marks=[pytest.mark.soak, with_erased_format_3]),
    ],
)
def test_other_rows_are_as_they_were(
    embedded_engine: Engine, mode: str, format_version: str
) -> None:
    engine = embedded_engine
    properties = {"format-version": format_version}
    properties |= MERGE_ON_READ if mode == "merge-on-read" else {}
    name = create(engine, COLUMNS, "part", properties, TABLE.name)
    engine.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(2) */ * FROM ({ROWS}) ORDER BY part")
    engine.sql(f"DELETE FROM {name} WHERE customer_id = 3 AND price > 10")
    if format_version == "2":
        engine.sql(f"ALTER TABLE {name} CREATE BRANCH experiment")
    before = everyone_else(engine)
    untouched = _paths_without_seven(engine, name)
    assert untouched

    deleted = delete_rows(engine, TABLE, [SEVEN], REQUEST)

    refs = ["main", "experiment"] if format_version == "2" else ["main"]
    assert deleted.rows == dict.fromkeys(refs, 10)
    assert count_rows(engine, TABLE, [SEVEN]) == {}
    for ref in refs:
        assert everyone_else(engine, f"VERSION AS OF '{ref}'") == before
    results = remove_from_files(engine, [TABLE], REQUEST, now=True)
    assert not [result for result in results if result.outcome == "failed"]
    assert everyone_else(engine) == before
    assert len(rows(engine, name=TABLE.name)) == int(
        engine.sql(f"SELECT count(*) FROM {name} WHERE customer_id <> 7").collect()[0][0]
    )
    assert _paths(engine, name) >= untouched
    main = read_history(engine, TABLE.name).main
    assert main.count("total-delete-files") == 0
    assert main.count("total-records") == len(rows(engine, name=TABLE.name))


def _paths(engine: Engine, name: str) -> set[str]:
    return {row[0] for row in engine.sql(f"SELECT DISTINCT _file FROM {name}").collect()}


def _paths_without_seven(engine: Engine, name: str) -> set[str]:
    """Return the files of the partition that has no row of the person, nor deleted ones."""
    with_seven = engine.sql(f"SELECT DISTINCT _file FROM {name} WHERE part = 1").collect()
    return _paths(engine, name) - {row[0] for row in with_seven}


@pytest.mark.parametrize("on_spark_3", [pytest.param(False, marks=with_erased_format_3), True])
def test_rows_of_a_table_of_format_3_are_deleted_by_position(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch, on_spark_3: bool
) -> None:
    engine = embedded_engine
    fill(engine, DELIVERED, DELIVERED_ROWS)
    found = count_rows(engine, DELIVERED, [ANNA])
    name = engine.catalog.sql_name(DELIVERED.name)
    engine.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    monkeypatch.setattr(delete_rows_module, "is_spark_3", lambda: on_spark_3)

    if on_spark_3:
        with pytest.raises(SetupError, match="expected Spark 4"):
            delete_rows(engine, DELIVERED, [ANNA], REQUEST)
        return
    assert delete_rows(engine, DELIVERED, [ANNA], REQUEST).rows == found == {"main": 6}
    main = read_history(engine, DELIVERED.name).main
    assert main.commit.kind == "erasure"


@pytest.mark.long
@pytest.mark.parametrize(
    ("format_version", "files"),
    [("2", "orc"), pytest.param("3", "parquet", marks=with_erased_format_3)],
)
def test_refs_that_only_spark_writes_are_reported_until_they_are_dropped(
    embedded_engine: Engine, format_version: str, files: str
) -> None:
    engine = embedded_engine
    properties = {"format-version": format_version, "write.format.default": files}
    name = create(engine, "customer_id bigint, rest string", "", properties | MERGE_ON_READ)
    table = replace(TABLE, name=NAME)
    engine.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES (8, 'a'), (7, 'b')")
    engine.sql(f"UPDATE {name} SET rest = 'new' WHERE customer_id = 7")
    [hers] = engine.sql(f"SELECT DISTINCT _file FROM {name} WHERE customer_id = 7").collect()
    for ref in ("BRANCH experiment", "BRANCH refused_x", "TAG month_end"):
        engine.sql(f"ALTER TABLE {name} CREATE {ref}")

    deleted = delete_rows(engine, table, [SEVEN], REQUEST)

    assert deleted.rows == {"main": 1, "refused_x": 2}
    assert deleted.dropped == ("refused_x",)
    assert set(deleted.skipped) == {"experiment", "month_end"}
    engine.sql(f"ALTER TABLE {name} DROP BRANCH experiment")
    engine.sql(f"ALTER TABLE {name} DROP TAG month_end")
    assert delete_rows(engine, table, [SEVEN], REQUEST).skipped == {}
    remove_from_files(engine, [table], REQUEST, now=True)
    assert not engine.catalog.load(NAME).io.new_input(hers[0]).exists()
    assert rows(engine) == [(8, "a")]


def test_a_tag_keeps_columns_that_were_dropped_since_for_everybody_else(
    embedded_engine: Engine,
) -> None:
    engine = embedded_engine
    name = create(engine, "customer_id bigint, amount int, note string", "", name=ORDERS.name)
    engine.sql(f"INSERT INTO {name} VALUES (7, 1, 'hers'), (8, 2, 'his')")
    for ref in ("BRANCH experiment", "TAG year_end"):
        engine.sql(f"ALTER TABLE {name} CREATE {ref}")
    engine.sql(f"ALTER TABLE {name} DROP COLUMN amount")
    engine.sql(f"ALTER TABLE {name} RENAME COLUMN note TO remark")

    delete_rows(engine, ORDERS, [ANNA], REQUEST)
    results = remove_from_files(engine, [ORDERS], REQUEST, now=True)

    assert {result.outcome for result in results} <= {"done", "skipped"}, results
    tagged = engine.sql(f"SELECT * FROM {name} VERSION AS OF 'year_end'").collect()
    assert [row.asDict() for row in tagged] == [{"customer_id": 8, "amount": 2, "note": "his"}]
    # Spark reads a branch by the table's columns, and so is its snapshot.
    branch = read_history(engine, ORDERS.name).refs["experiment"]
    for version in ("'experiment'", branch):
        [row] = engine.sql(f"SELECT * FROM {name} VERSION AS OF {version}").collect()
        assert row.asDict() == {"customer_id": 8, "remark": "his"}
