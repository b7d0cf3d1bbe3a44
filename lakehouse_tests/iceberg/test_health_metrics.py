"""The health of merge-on-read tables equals Iceberg's metadata tables."""

from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.health_metrics import TableHealth
from lakehouse_tests.conftest import with_format_3
from lakehouse_tests.iceberg.evolving import NAME, columns, declared


@pytest.fixture(params=[2, pytest.param(3, marks=with_format_3)])
def engine_with_deletes(request: pytest.FixtureRequest, embedded_engine: Engine) -> Engine:
    """`silver.orders` in three partitions of two files each, of which two have deletes."""
    table = declared(
        columns=columns(id="bigint", region="string"),
        partitioning=["region"],
        row_level="merge-on-read",
        format_version=request.param,
    )
    ensure(embedded_engine, table)
    name = embedded_engine.catalog.sql_name(NAME)
    for start in (0, 30):
        embedded_engine.sql(
            f"INSERT INTO {name} SELECT id, concat('r', id % 3) FROM range({start}, {start + 30})"
        )
    embedded_engine.sql(f"DELETE FROM {name} WHERE id IN (0, 3, 30)")
    embedded_engine.sql(f"DELETE FROM {name} WHERE id IN (1, 6)")
    return embedded_engine


def told(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    rows = engine.sql(query.format(t=engine.catalog.sql_name(NAME))).collect()
    return sorted(map(tuple, rows))


def by_partition(health: TableHealth) -> list[tuple[Any, ...]]:
    rows = []
    for part in health.partitions:
        counts = (part.rows, part.data_files, part.data_bytes)
        rows.append((part.key.values[0][1], *counts, part.deleted_rows, part.delete_files))
    return sorted(rows)


PARTITIONS = """
    SELECT partition.region, record_count, file_count, total_data_file_size_in_bytes,
        position_delete_record_count, position_delete_file_count FROM {t}.partitions
"""


def test_health_is_what_metadata_tables_tell(engine_with_deletes: Engine) -> None:
    engine = engine_with_deletes
    health = read_table_health(engine, NAME)
    assert by_partition(health) == told(engine, PARTITIONS)
    assert told(engine, "SELECT count(*) FROM {t}") == [(health.rows - health.deleted_rows,)]
    assert health.deleted_rows == 5 and health.delete_files > 2
    assert health.dangling_delete_files == 0
    assert told(engine, "SELECT count(*), sum(length) FROM {t}.manifests") == [
        (health.manifests, health.manifest_bytes)
    ]
    snapshots = told(engine, "SELECT count(*), min(committed_at) FROM {t}.snapshots")
    oldest = health.snapshot_times[0].replace(tzinfo=None)
    assert snapshots == [(len(health.snapshot_times), oldest)]


def test_deletes_of_rewritten_files_dangle(engine_with_deletes: Engine) -> None:
    engine = engine_with_deletes
    engine.sql(
        f"CALL {engine.catalog.name}.system.rewrite_data_files(table => '{NAME}',"
        " options => map('rewrite-all', 'true'))"
    )
    health = read_table_health(engine, NAME)
    # Iceberg drops deletion vectors with the file that they are of.
    assert (health.delete_files > 0) == (health.format_version == 2)
    assert told(engine, "SELECT count(*) FROM {t}.delete_files") == [(health.delete_files,)]
    assert health.dangling_delete_files == health.delete_files
    assert (health.deleted_rows, health.deleted_row_share) == (0, 0.0)
    assert told(engine, "SELECT count(*) FROM {t}") == [(health.rows,)]
