"""Other engines read the same rows from the same files, without a JVM."""

import hashlib
from collections.abc import Callable, Iterable

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

COLUMNS = {
    "bronze.raw_fruits": ["id", "fruit", "berry", "_source_file", "_source_sha256", "_source_row"],
    "silver.fruits": ["id", "fruit", "berry"],
}


def by_pyiceberg(table: Table, columns: list[str]) -> Iterable[tuple]:
    return [tuple(row.values()) for row in table.scan(selected_fields=tuple(columns)).to_arrow().to_pylist()]


def by_duckdb(table: Table, columns: list[str]) -> Iterable[tuple]:
    return table.scan().to_duckdb("t").execute(f"SELECT {', '.join(columns)} FROM t").fetchall()


def by_polars(table: Table, columns: list[str]) -> Iterable[tuple]:
    import polars as pl

    return pl.scan_iceberg(table, reader_override="pyiceberg").select(columns).collect().rows()


def checksum(rows: Iterable[tuple]) -> str:
    return hashlib.sha256("\n".join(sorted(repr(tuple(row)) for row in rows)).encode()).hexdigest()


@pytest.fixture
def catalog(fruits):
    """The catalog of a home with the sample files ingested, opened as an analyst would."""
    fruits.put_samples()
    fruits.ingest()
    return SqlCatalog("lakehouse", uri=f"sqlite:///{fruits.settings.home}/catalog.db")


def test_read_what_spark_reads(catalog, fruits):
    engines: dict[str, Callable] = {"PyIceberg": by_pyiceberg, "DuckDB": by_duckdb, "Polars": by_polars}
    for name, columns in COLUMNS.items():
        spark = checksum(fruits.rows(f"SELECT {', '.join(columns)} FROM {name}"))
        table = catalog.load_table(name)
        assert {engine: checksum(read(table, columns)) for engine, read in engines.items()} == dict.fromkeys(
            engines, spark
        )


def test_see_the_empty_quarantine(catalog):
    assert catalog.load_table("silver.fruits_quarantine").scan().to_arrow().num_rows == 0
