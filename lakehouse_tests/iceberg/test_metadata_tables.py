"""Files, snapshots and refs read without a JVM are those of Spark's metadata tables."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.referenced_files import metadata_files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse_tests.conftest import (
    ON_GLUE,
    engine_on,
    on_embedded_alone,
    on_empty_account,
    settings_at,
    skip_old_iceberg,
    with_format_3,
)
from lakehouse_tests.iceberg.evolving import NAME, columns, declared
from lakehouse_tests.iceberg.upkeep.tables import local_path, stored

COLUMNS = columns(
    id="int",
    region="string",
    d="date",
    at="timestamp",
    n="timestamp_ntz",
    amount="decimal(10,2)",
    flag="boolean",
    twin="string",
)
INSERTED = """
    SELECT CAST(id AS INT), if(id % 5 = 0, NULL, concat('r', id % 3)), date_add(DATE '1969-12-30', CAST(id AS INT)),
        timestamp_millis(id * 1000), CAST(timestamp_millis(id * 1000) AS TIMESTAMP_NTZ), CAST(id / 4 AS DECIMAL(10,2)),
        id % 2 = 0, twin
    FROM range(12) LATERAL VIEW explode(array('a', 'b')) AS twin
"""


@pytest.fixture(scope="module", params=["embedded", "glue"])
def table(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Engine:
    """A table with three specs, a delete file, a branch, a tag and a snapshot rolled back."""
    settings = settings_at(tmp_path_factory.mktemp("orders") / "home")
    if request.param == "glue" or ON_GLUE:
        settings = on_empty_account(request.getfixturevalue("moto"), settings)
    else:
        settings = skip_old_iceberg(settings)
    engine = engine_on(spark, settings)
    fill(engine)
    return engine


def fill(engine: Engine) -> None:
    name = engine.catalog.sql_name(NAME)
    first = declared(columns=COLUMNS, partitioning=["region", "d"], row_level="merge-on-read")
    ensure(engine, first)
    engine.sql(f"INSERT INTO {name} {INSERTED}")
    second = declared(
        columns=COLUMNS, partitioning=["days(d)", "at", "n"], row_level="merge-on-read"
    )
    apply(engine, second)
    engine.sql(f"INSERT INTO {name} {INSERTED}")
    kept = read_history(engine, NAME).main.snapshot_id
    engine.sql(f"INSERT INTO {name} {INSERTED}")
    engine.sql(f"CALL {engine.catalog.name}.system.rollback_to_snapshot('{NAME}', {kept})")
    apply(
        engine,
        replace(
            second,
            partitioning=[
                "months(d)",
                "amount",
                "flag",
                "bucket(id, 2)",
                "truncate(1, region)",
            ],
        ),
    )
    engine.sql(f"INSERT INTO {name} {INSERTED}")
    engine.sql(f"DELETE FROM {name} WHERE id = 7 AND twin = 'a'")
    engine.sql(f"ALTER TABLE {name} CREATE TAG first AS OF VERSION {kept} RETAIN 7 DAYS")
    engine.sql(f"ALTER TABLE {name} CREATE BRANCH side WITH SNAPSHOT RETENTION 3 SNAPSHOTS")
    engine.sql(f"INSERT INTO {engine.catalog.sql_name(NAME, branch='side')} {INSERTED}")


def told(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    return seen(engine.sql(query.format(t=engine.catalog.sql_name(NAME))).collect())


def plain(value: Any) -> Any:
    """Return a value in one form: partitions as pairs, timestamps in UTC without a zone."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return sorted((key, plain(part)) for key, part in value.items())
    return value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value


def seen(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


def test_files_are_those_of_spark(table: Engine) -> None:
    found = [
        (
            file.content,
            file.path,
            file.format.upper(),
            file.spec_id,
            file.partition,
            file.record_count,
            file.size_bytes,
        )
        for file in files(table, NAME)
    ]
    assert {row[0] for row in found} == {"data", "position deletes"}
    assert len({row[3] for row in found}) == 3
    assert seen(found) == told(
        table,
        "SELECT element_at(array('data', 'position deletes', 'equality deletes'), content + 1),"
        " file_path, file_format, spec_id, partition, record_count, file_size_in_bytes FROM"
        " {t}.files",
    )


def test_the_log_of_the_history_is_that_of_spark(table: Engine) -> None:
    history = read_history(table, NAME)
    line = {snapshot.snapshot_id for snapshot in history.line}
    entries = []
    for made_current_at, snapshot_id in history.log:
        parent_id = history.snapshots[snapshot_id].parent_id
        entries.append((made_current_at, snapshot_id, parent_id, snapshot_id in line))
    assert not line.issuperset(snapshot_id for _, snapshot_id in history.log)
    assert seen(entries) == told(table, "SELECT * FROM {t}.history")


def test_snapshots_are_those_of_spark(table: Engine) -> None:
    snapshots = [
        (
            snapshot.committed_at,
            snapshot.snapshot_id,
            snapshot.parent_id,
            snapshot.operation,
            snapshot.count("total-records"),
        )
        for snapshot in read_history(table, NAME).snapshots.values()
    ]
    assert seen(snapshots) == told(
        table,
        "SELECT committed_at, snapshot_id, parent_id, operation, CAST(summary['total-records']"
        " AS INT) FROM {t}.snapshots",
    )


def test_refs_are_those_of_spark(table: Engine) -> None:
    refs = read_history(table, NAME).refs
    assert refs.keys() == {"main", "first", "side"}
    assert seen([*refs.items()]) == told(table, "SELECT name, snapshot_id FROM {t}.refs")


@on_embedded_alone("looks at files of a folder")
def test_metadata_files_are_all_that_are_kept_beside_the_data(embedded_engine: Engine) -> None:
    ensure(embedded_engine, declared())
    for number in range(2):
        embedded_engine.sql(
            f"INSERT INTO {embedded_engine.catalog.sql_name(NAME)} VALUES ({number}, 'a')"
        )
    named = metadata_files(embedded_engine, NAME)
    stored_metadata = [
        path for path in stored(embedded_engine, NAME) if "metadata" in path.parts
    ]
    assert {local_path(file.path): file.size_bytes for file in named} == {
        path: path.stat().st_size for path in stored_metadata
    }
    assert {file.kind for file in named} == {"table metadata", "manifest list", "manifest"}


@with_format_3
def test_deletion_vectors_are_delete_files(embedded_engine: Engine) -> None:
    ensure(embedded_engine, declared(format_version=3, row_level="merge-on-read"))
    name = embedded_engine.catalog.sql_name(NAME)
    embedded_engine.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(10)")
    embedded_engine.sql(f"DELETE FROM {name} WHERE id < 3")
    assert [
        (file.content, file.format, file.record_count) for file in files(embedded_engine, NAME)
    ] == [
        ("data", "parquet", 10),
        ("position deletes", "puffin", 3),
    ]
