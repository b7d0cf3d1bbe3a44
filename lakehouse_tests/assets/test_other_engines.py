"""Other engines read the same rows by Iceberg readers of their own, without a JVM."""

import hashlib
from collections.abc import Callable, Iterable
from tempfile import TemporaryDirectory

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

COLUMNS = {
    "bronze.raw_fruits": [
        "id",
        "fruit",
        "berry",
        "_source_file",
        "_source_sha256",
        "_source_row",
    ],
    "silver.fruits": ["id", "fruit", "berry"],
}


def by_pyiceberg(table: Table, columns: list[str]) -> Iterable[tuple]:
    return [
        tuple(row.values())
        for row in table.scan(selected_fields=tuple(columns)).to_arrow().to_pylist()
    ]


def by_duckdb(table: Table, columns: list[str]) -> Iterable[tuple]:
    import duckdb
    from duckdb_extensions import import_extension

    with (
        TemporaryDirectory() as extensions,
        duckdb.connect(config={"extension_directory": extensions}) as duck,
    ):
        for extension in ("avro", "iceberg"):
            import_extension(extension, con=duck)
            duck.load_extension(extension)
        query = f"SELECT {', '.join(columns)} FROM iceberg_scan(?)"
        return duck.execute(query, [table.metadata_location]).fetchall()


def by_polars(table: Table, columns: list[str]) -> Iterable[tuple]:
    """PyIceberg lists the files, of which Polars reads the rows: a package of its own that
    lists them is not there.
    """
    import polars as pl

    return (
        pl.scan_iceberg(table.metadata_location, reader_override="native")
        .select(columns)
        .collect()
        .rows()
    )


def checksum(rows: Iterable[tuple]) -> str:
    return hashlib.sha256(
        "\n".join(sorted(repr(tuple(row)) for row in rows)).encode()
    ).hexdigest()


@pytest.fixture
def catalog(fruits):
    fruits.put_samples()
    fruits.ingest()
    return SqlCatalog("lakehouse", uri=f"sqlite:///{fruits.settings.home}/catalog.db")


@pytest.mark.scenario
def test_read_what_spark_reads(catalog, fruits, monkeypatch):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    engines: dict[str, Callable] = {
        "PyIceberg": by_pyiceberg,
        "DuckDB": by_duckdb,
        "Polars": by_polars,
    }
    for name, columns in COLUMNS.items():
        spark = checksum(fruits.rows(f"SELECT {', '.join(columns)} FROM {name}"))
        table = catalog.load_table(name)
        assert {
            engine: checksum(read(table, columns)) for engine, read in engines.items()
        } == dict.fromkeys(engines, spark)


@pytest.mark.parametrize("version", [2, 3])
def test_read_a_table_with_deleted_rows(embedded_engine, monkeypatch, version):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    name = embedded_engine.catalog.sql_name("silver.changed")
    embedded_engine.sql(f"CREATE NAMESPACE {name.rpartition('.')[0]}")
    embedded_engine.sql(
        f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ('format-version' = '{version}',"
        " 'write.delete.mode' = 'merge-on-read') AS SELECT * FROM VALUES (1, 'Apple'),"
        " (2, 'Banana'), (3, 'Cherry') AS (id, fruit)"
    )
    embedded_engine.sql(f"DELETE FROM {name} WHERE fruit = 'Banana'")
    table = embedded_engine.catalog.load("silver.changed")
    assert table.current_snapshot().summary["total-position-deletes"] == "1"
    for read in (by_pyiceberg, by_duckdb, by_polars):
        assert sorted(read(table, ["id", "fruit"])) == [(1, "Apple"), (3, "Cherry")]
