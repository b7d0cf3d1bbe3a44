"""Orphans: what no metadata names goes once it is old, and nothing else."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse_tests.conftest import newer_iceberg, on_embedded_alone
from lakehouse_tests.iceberg.upkeep.tables import (
    NAME,
    create,
    local_path,
    make_older,
    make_older_on_s3,
    put_orphan,
    rows,
    stored,
    undeletable,
)

# Those on Glue among them run without ON_GLUE.
pytestmark = on_embedded_alone("gives files an age, which S3 takes from nobody")


def filled(engine: Engine) -> str:
    sick = create(engine, "id bigint")
    engine.sql(f"INSERT INTO {sick} SELECT /*+ REPARTITION(4) */ id FROM range(8)")
    return sick


def week_ago() -> datetime:
    return datetime.now(UTC) - timedelta(days=7)


@pytest.mark.long
def test_old_files_without_a_name_go_and_young_ones_stay(embedded_engine: Engine) -> None:
    filled(embedded_engine)
    named = stored(embedded_engine)
    for file in named:
        make_older(file, days=30)
    put_orphan(embedded_engine, "data/killed.parquet", days_old=8)
    put_orphan(embedded_engine, "metadata/lost-m0.avro", days_old=8)
    current = local_path(embedded_engine.catalog.load(NAME).metadata_location)
    of_failed_commit = current.with_name("00001-lost.metadata.json")
    shutil.copy(current, of_failed_commit)
    make_older(of_failed_commit, days=8)
    young = put_orphan(embedded_engine, "data/young.parquet", days_old=2)

    result = remove_orphans(embedded_engine, NAME, older_than=week_ago())

    assert (result.outcome, result.reason) == ("done", "")
    assert stored(embedded_engine) == named | {young}
    assert result.step_metrics["removed_files"] == 3
    removed_bytes = 2 * len(b"left behind") + current.stat().st_size
    assert result.step_metrics["removed_bytes"] == removed_bytes
    assert len(rows(embedded_engine)) == 8
    again = remove_orphans(embedded_engine, NAME, older_than=week_ago())
    assert again.outcome == "skipped"


def test_none_is_removed_that_a_running_write_may_have_made(embedded_engine: Engine) -> None:
    filled(embedded_engine)
    young = put_orphan(embedded_engine, "data/young.parquet", days_old=0.5)

    result = remove_orphans(embedded_engine, NAME, older_than=datetime.now(UTC))

    assert result.outcome == "skipped"
    assert young.exists()


@pytest.mark.long
def test_so_many_are_rather_of_somebody_else(embedded_engine: Engine) -> None:
    filled(embedded_engine)
    there = len(stored(embedded_engine))
    names = [f"data/{number}.parquet" for number in range(there + 1)]
    orphans = [put_orphan(embedded_engine, name, days_old=8) for name in names]

    result = remove_orphans(embedded_engine, NAME, older_than=week_ago())

    assert result.outcome == "failed"
    assert f"{len(orphans)} of {there + len(orphans)} files in" in result.reason
    assert all(orphan.exists() for orphan in orphans)
    procedure = result.reason.partition('--write "CALL ')[2].removesuffix('"`')
    embedded_engine.sql(f"CALL {embedded_engine.catalog.name}.{procedure}")
    assert not any(orphan.exists() for orphan in orphans)


def test_a_location_of_two_tables_is_left_alone(embedded_engine: Engine) -> None:
    filled(embedded_engine)
    location = embedded_engine.catalog.load(NAME).location()
    other = f"{embedded_engine.catalog.name}.silver.inside"
    embedded_engine.sql(
        f"CREATE TABLE {other} (id bigint) USING iceberg LOCATION '{location}/inside'"
    )
    orphan = put_orphan(embedded_engine, "data/killed.parquet", days_old=8)

    for name in (NAME, "silver.inside"):
        result = remove_orphans(embedded_engine, name, older_than=week_ago())
        assert result.outcome == "skipped" and "is shared with silver." in result.reason
    assert orphan.exists()


def test_a_file_that_could_not_be_deleted_is_named(embedded_engine: Engine) -> None:
    filled(embedded_engine)
    orphan = put_orphan(embedded_engine, "data/killed.parquet", days_old=8)

    with undeletable(orphan):
        result = remove_orphans(embedded_engine, NAME, older_than=week_ago())

    assert (result.outcome, result.reason) == ("partial", "1 files could not be deleted")
    assert [local_path(path) for path in result.remaining] == [orphan]


@newer_iceberg("has no prefix_listing")
def test_nothing_is_removed_of_a_table_that_somebody_registered_from_this_one(
    glue_engine: Engine,
) -> None:
    filled(glue_engine)
    client = glue_engine.catalog.client
    client.create_namespace("sandbox")
    client.register_table("sandbox.x", glue_engine.catalog.load(NAME).metadata_location)
    before = list_location(glue_engine.catalog.load(NAME))
    twin = glue_engine.catalog.sql_name("sandbox.x")
    glue_engine.sql(f"INSERT INTO {twin} VALUES (100)")
    for file in list_location(glue_engine.catalog.load(NAME)).values():
        make_older_on_s3(file.path, days=8)
    assert len(list_location(glue_engine.catalog.load(NAME))) > len(before)

    result = remove_orphans(glue_engine.within([NAME]), NAME, older_than=week_ago())

    assert result.outcome == "failed"
    assert "the table sandbox.x, of a database without declarations" in result.reason
    assert (100,) in rows(glue_engine, name="sandbox.x")


@pytest.mark.long
@newer_iceberg("has no prefix_listing")
def test_they_are_found_and_removed_on_s3(glue_engine: Engine) -> None:
    filled(glue_engine)
    table = glue_engine.catalog.load(NAME)
    orphan = f"{table.location()}/data/killed.parquet"
    for path in (orphan, f"{table.location()}/data/young.parquet"):
        with table.io.new_output(path).create() as file:
            file.write(b"left behind")
    make_older_on_s3(orphan, days=8)

    result = remove_orphans(glue_engine, NAME, older_than=week_ago())

    assert (result.outcome, result.step_metrics["removed_files"]) == ("done", 1)
    names = {Path(path).name for path in list_location(table)}
    assert "young.parquet" in names
    assert "killed.parquet" not in names
    assert len(rows(glue_engine)) == 8
