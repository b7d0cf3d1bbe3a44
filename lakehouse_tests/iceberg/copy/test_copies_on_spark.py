"""Spark reads tables copied to Glue and S3: deletes, tags and each format; and writes them."""

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.copy.copy_table import copy_table
from lakehouse_tests.conftest import newer_iceberg, on_embedded_alone
from lakehouse_tests.iceberg.upkeep.tables import create as create_table
from lakehouse_tests.iceberg.upkeep.tables import rows as rows_of

NAME = "silver.orders"
pytestmark = on_embedded_alone("one of its two catalogs is Glue")
VARIANTS = {
    "deletes by position": ("2", "parquet", "rows"),
    "deletion vectors": ("3", "parquet", "rows"),
    "avro": ("2", "avro", "bytes"),
    "orc": ("2", "orc", "rows"),
}


@pytest.mark.long
@newer_iceberg("is refused on the embedded catalog")
@pytest.mark.parametrize("variant", VARIANTS)
def test_spark_reads_the_same_rows(
    embedded_engine: Engine, glue_engine: Engine, variant: str
) -> None:
    version, file_format, verified_by = VARIANTS[variant]
    create(embedded_engine, version, file_format)
    expected = rows(embedded_engine)
    source = embedded_engine.catalog.load(NAME)

    done = copy_table(source, NAME, glue_engine.catalog, lambda _: None)

    assert done.verified_by == verified_by
    assert rows(glue_engine) == expected
    assert rows(glue_engine, "VERSION AS OF 'before'") == [(1, "a"), (2, "b"), (3, "c")]
    glue_engine.sql(f"DELETE FROM {glue_engine.catalog.sql_name(NAME)} WHERE id = 1")
    assert rows(glue_engine) == [(3, "c"), (4, "d")]
    assert rows(embedded_engine) == expected


def create(engine: Engine, version: str, file_format: str) -> None:
    """Make a table of which one row is deleted, and that has a tag from before."""
    properties = {
        "format-version": version,
        "write.format.default": file_format,
        "write.delete.mode": "merge-on-read",
        # Position deletes in Avro and ORC cannot be copied.
        "write.delete.format.default": "parquet",
    }
    table = create_table(engine, "id INT, v STRING", properties=properties, name=NAME)
    engine.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    )
    engine.sql(f"ALTER TABLE {table} CREATE TAG before")
    engine.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    engine.sql(f"DELETE FROM {table} WHERE id = 2")


def rows(engine: Engine, version: str = "") -> list[tuple]:
    return rows_of(engine, version, NAME)
