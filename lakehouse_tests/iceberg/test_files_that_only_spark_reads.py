"""Rows in Avro, which PyIceberg does not read, are an error that names the format."""

from datetime import date

import pytest

from lakehouse.errors import FilesUnsupported
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.read.quarantined_rows import count_quarantined
from lakehouse.iceberg.read.stale_partitions import quarantined_values
from lakehouse.iceberg.rules.rows import castable
from lakehouse.tables.table import Append, Column, IcebergTable, OverwritePartitions

SOURCE = [
    Column("_source_file", "string"),
    Column("_source_sha256", "string"),
    Column("_source_row", "bigint"),
]
RAW = IcebergTable(
    name="bronze.raw_visits",
    comment="Visits as delivered.",
    columns=[Column("day", "string"), Column("sent_on", "date"), *SOURCE],
    partitioning=["sent_on"],
    write=Append(),
    file_format="avro",
)
VISITS = IcebergTable(
    name="silver.visits",
    comment="Visits by day.",
    columns=[Column("day", "date"), *SOURCE],
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
    rules=[castable("day", "date")],
)
QUARANTINE = "silver.visits_quarantine"
INPUTS = {"delivered": versions_of(RAW.name, by="sent_on")}
DELIVERED = "VALUES ('?', DATE '2026-01-02', 'a', 's', 1)"
IN_AVRO = "cannot be read without Spark: its data files are Avro"


@pytest.fixture
def engine(embedded_engine: Engine) -> Engine:
    """A source in Avro, and a quarantine, each with the same row."""
    name = embedded_engine.catalog.sql_name
    ensure(embedded_engine, RAW)
    embedded_engine.sql(f"INSERT INTO {name(RAW.name)} {DELIVERED}")
    ensure(embedded_engine, VISITS.quarantine)
    quarantine_rows(embedded_engine)
    return embedded_engine


def set_format(engine: Engine, table: str, file_format: str) -> None:
    engine.sql(
        f"ALTER TABLE {engine.catalog.sql_name(table)}"
        f" SET TBLPROPERTIES ('write.format.default' = '{file_format}')"
    )


def quarantine_rows(engine: Engine) -> None:
    engine.sql(
        f"INSERT INTO {engine.catalog.sql_name(QUARANTINE)}"
        " (day, _row_key, _reasons, _source_file, _source_sha256, _source_row, _quarantined_at)"
        " VALUES ('?', 'k', array('castable_day'), 'a', 's', 1, current_timestamp())"
    )


def test_the_source_of_quarantined_rows_may_be_in_avro(engine: Engine) -> None:
    assert quarantined_values(engine, VISITS, INPUTS) == {date(2026, 1, 2)}


def test_a_quarantine_that_somebody_made_write_avro_is_named(engine: Engine) -> None:
    assert count_quarantined(engine.catalog, VISITS).rows == 1
    set_format(engine, QUARANTINE, "avro")
    quarantine_rows(engine)

    with pytest.raises(FilesUnsupported, match=rf"{QUARANTINE} {IN_AVRO}"):
        count_quarantined(engine.catalog, VISITS)
