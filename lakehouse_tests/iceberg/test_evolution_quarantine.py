"""A quarantine stays usable when its table's declaration changes."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Merge, Versions
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import content, rows_of

pytestmark = pytest.mark.spark
RULES = [between("v", 0, 9)]
COLUMNS = [Column("id", "int"), Column("v", "int"), Column("at", "timestamp")]
TABLE = IcebergTable(
    "silver.readings", "Numbers from 0 to 9.", COLUMNS, Merge(on="id"), rules=RULES
)
QUARANTINE = "silver.readings_quarantine"
DELIVERED = "1 AS id, 1 AS v, TIMESTAMP'2024-01-01 00:00:00' AS at"
REFUSED = "2 AS id, 99 AS v, TIMESTAMP'2024-01-01 00:00:00' AS at"


def selected(engine: Engine, *rows: str) -> Callable[..., DataFrame]:
    return lambda **_: engine.sql(" UNION ALL ".join(f"SELECT {row}" for row in rows))


def published(engine: Engine, table: IcebergTable, *rows: str) -> Published:
    done = write(engine, table, selected(engine, *rows))
    assert isinstance(done, Published)
    return done


@glue_in_test_all
def test_a_rule_that_quarantines_comes_later(engine: Engine) -> None:
    unruled = replace(TABLE, rules=[])
    published(engine, unruled, DELIVERED, REFUSED)
    assert not engine.catalog.has(QUARANTINE)

    published(engine, TABLE, "3 AS id, 3 AS v, NULL AS at", "4 AS id, 44 AS v, NULL AS at")
    assert content(engine, TABLE.name, "id", "v") == [(1, 1), (2, 99), (3, 3)]
    assert content(engine, QUARANTINE, "id", "v", "_reasons") == [("4", "44", ["between_v"])]


def test_a_renamed_column_follows_that_of_the_table(embedded_engine: Engine) -> None:
    published(embedded_engine, TABLE, DELIVERED, REFUSED)
    name = Column("number", "int", renamed_from="v")
    after = replace(
        TABLE, columns=[COLUMNS[0], name, COLUMNS[2]], rules=[between("number", 0, 9)]
    )
    apply(embedded_engine, after)

    published(embedded_engine, after, "3 AS id, 30 AS number, NULL AS at", "4, 4, NULL")

    assert content(embedded_engine, QUARANTINE, "id", "number") == [("2", "99"), ("3", "30")]


@pytest.mark.long
def test_versions_are_declared_later(embedded_engine: Engine) -> None:
    published(embedded_engine, TABLE, DELIVERED, REFUSED)
    versioned = replace(TABLE, versions=Versions(of="id", newest="at"))
    published(
        embedded_engine, versioned, "2 AS id, 2 AS v, TIMESTAMP'2024-01-02 00:00:00' AS at"
    )
    assert content(embedded_engine, QUARANTINE, "id") == []
    assert content(embedded_engine, TABLE.name, "id") == [(1,), (2,)]


def test_its_own_columns_stay_when_the_table_renames_one_of_that_name(
    embedded_engine: Engine,
) -> None:
    before = replace(TABLE, columns=[*COLUMNS, Column("_source_file", "string")])
    after = replace(
        TABLE, columns=[*COLUMNS, Column("file", "string", renamed_from="_source_file")]
    )
    rows = "id int, v int, at timestamp, _source_file string"
    write(embedded_engine, before, rows_of(embedded_engine, rows, [(2, 99, None, "a.csv")]))
    ensure(embedded_engine, after.quarantine)
    assert content(embedded_engine, QUARANTINE, "id", "_source_file", "file") == [
        ("2", "a.csv", None)
    ]
