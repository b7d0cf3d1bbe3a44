"""Copies of tables with their history, without a JVM: to a home, to Glue, and back."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from lakehouse.errors import LakehouseError, TableDamaged
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.copy import copy_table as copying
from lakehouse.iceberg.copy.copy_table import TableCopy
from lakehouse.iceberg.copy.moved_files import MovedPaths, moved_deletes, moved_deletion_vectors
from lakehouse.iceberg.metadata.referenced_files import named_files
from lakehouse.settings import Settings
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.iceberg.position_deletes import delete_first_rows

NAME = "silver.orders"
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "day", DateType()),
    NestedField(3, "name", StringType()),
    NestedField(4, "amount", DecimalType(10, 2)),
    NestedField(5, "rate", DoubleType()),
    NestedField(6, "at", TimestamptzType()),
    NestedField(7, "marks", ListType(8, LongType())),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def catalog(settings: Settings) -> Catalog:
    return Catalog.of(settings)


@pytest.fixture(params=["home", pytest.param("aws", marks=pytest.mark.long)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if request.param == "aws":
        return Catalog.of(request.getfixturevalue("aws_settings"))
    return other_home(tmp_path)


def other_home(tmp_path: Path) -> Catalog:
    return Catalog.of(settings_at(tmp_path / "other"))


def made(catalog: Catalog) -> Table:
    """Make a table with two snapshots, of which the first has a tag."""
    catalog.client.create_namespace_if_not_exists("silver")
    table = catalog.client.create_table(NAME, SCHEMA, partition_spec=BY_DAY)
    append(table, 1, 2)
    first = table.metadata.current_snapshot_id
    table.manage_snapshots().create_tag(first, "before").commit()
    append(table, 3)
    return table


def append(table: Table, *ids: int) -> None:
    table.append(pa.Table.from_pylist(list(map(row, ids)), table.schema().as_arrow()))


def delete_row(table: Table, at: int) -> None:
    """Delete a row, each of which has a file of its own."""
    (task,) = table.scan(f"id = {at}").plan_files()
    delete_first_rows(table, task.file.file_path)


def row(at: int) -> dict:
    return {
        "id": at,
        "day": date(2026, 3, at),
        "name": f"n{at}" if at % 2 else None,
        "amount": Decimal(at),
        "rate": at / 3,
        "at": AT,
        "marks": [at, at + 1],
    }


def ids(table: Table, snapshot_id: int | None = None) -> list[int]:
    rows = table.scan(snapshot_id=snapshot_id).to_arrow()
    return sorted(rows["id"].to_pylist())


def copied(source: Table, target: Catalog) -> TableCopy:
    return copying.copy_table(source, NAME, target, lambda _: None)


def test_rows_and_snapshots_are_at_the_new_place(catalog: Catalog, target: Catalog) -> None:
    source = made(catalog)

    done = copied(source, target)

    found = target.load(NAME)
    assert (done.rows, done.snapshots, done.verified_by) == (3, 2, "rows")
    assert ids(found) == [1, 2, 3]
    assert found.scan().to_arrow().sort_by("id") == source.scan().to_arrow().sort_by("id")
    tagged = found.metadata.refs["before"].snapshot_id
    assert ids(found, tagged) == [1, 2]
    assert found.history() == source.history()


def test_nothing_at_the_new_place_names_the_old_one(catalog: Catalog, target: Catalog) -> None:
    source = made(catalog)
    delete_row(source, 1)

    copied(source, target)

    found = target.load(NAME)
    assert ids(found) == [2, 3]
    named = [found.location(), *named_files(found)]
    named += [entry.metadata_file for entry in found.metadata.metadata_log]
    assert not [path for path in named if str(Path(catalog.place).parent / "warehouse") in path]
    assert found.metadata.metadata_log


@pytest.mark.long
def test_there_and_back_it_is_the_same(catalog: Catalog, target: Catalog, tmp_path) -> None:
    there = copied(made(catalog), target)
    back = Catalog.of(settings_at(tmp_path / "back"))

    assert copied(target.load(NAME), back) == there
    assert ids(back.load(NAME)) == [1, 2, 3]


def test_files_that_lie_elsewhere_come_along(
    catalog: Catalog, target: Catalog, tmp_path: Path
) -> None:
    source = made(catalog)
    elsewhere = f"file://{tmp_path}/elsewhere"
    with source.transaction() as change:
        change.set_properties({"write.data.path": elsewhere})
    append(source, 4)
    assert any("/elsewhere/" in path for path in named_files(source))

    copied(source, target)

    found = target.load(NAME)
    assert ids(found) == [1, 2, 3, 4]
    assert "write.data.path" not in found.properties
    append(found, 5)
    location = found.location().partition("://")[2]
    assert all(path.startswith(location) for path in named_files(found))


class Killed(BaseException):
    """Ends a copy as nothing that the code foresees does."""


def test_a_copy_that_was_cut_short_is_not_seen_and_goes_on(
    catalog: Catalog, target: Catalog, monkeypatch
) -> None:
    source = made(catalog)
    real, streamed = copying.FileCopier._stream, []

    def stream(copier, file, new_path):
        streamed.append(file.path)
        if len(streamed) == 2:
            raise Killed
        real(copier, file, new_path)

    monkeypatch.setattr(copying, "_AT_ONCE", 1)
    monkeypatch.setattr(copying.FileCopier, "_stream", stream)
    with pytest.raises(Killed):
        copied(source, target)
    assert target.tables() == []

    copied(source, target)

    assert ids(target.load(NAME)) == [1, 2, 3]
    assert streamed.count(streamed[0]) == 1, "what was there whole was copied again"


def test_other_rows_at_the_new_place_are_not_registered(
    catalog: Catalog, target: Catalog, monkeypatch
) -> None:
    source = made(catalog)
    delete_row(source, 1)
    monkeypatch.setattr(
        copying,
        "moved_deletes",
        lambda path, kind, content, _: moved_deletes(path, kind, content, str),
    )

    with pytest.raises(LakehouseError, match=r"main has 3 rows .* expected 2 with"):
        copied(source, target)

    assert target.tables() == []


def test_a_file_that_is_gone_is_named(catalog: Catalog, target: Catalog) -> None:
    source = made(catalog)
    (task,) = source.scan("id = 1").plan_files()
    source.io.delete(task.file.file_path)

    with pytest.raises(TableDamaged, match=task.file.file_path):
        copied(source, target)

    assert target.tables() == []


def test_a_table_that_another_made_meanwhile_stays(
    catalog: Catalog, target: Catalog, monkeypatch
) -> None:
    source = made(catalog)
    real = copying._verify

    def late(*given):
        target.client.create_table(NAME, SCHEMA)
        return real(*given)

    monkeypatch.setattr(copying, "_verify", late)
    with pytest.raises(LakehouseError, match="by another process meanwhile"):
        copied(source, target)

    assert ids(target.load(NAME)) == []


def test_a_copy_that_was_renamed_and_written_to_keeps_its_files(
    catalog: Catalog, target: Catalog
) -> None:
    source = made(catalog)
    copied(source, target)
    target.client.rename_table(NAME, "silver.old")
    append(target.load("silver.old"), 4)

    with pytest.raises(LakehouseError, match=r"silver\.old is there"):
        copied(source, target)

    assert ids(target.load("silver.old")) == [1, 2, 3, 4]
    assert target.tables() == ["silver.old"]


def test_deletion_vectors_name_their_data_files_at_the_new_place() -> None:
    blob = b"\x01\x02\x03"
    footer = (
        b'{"blobs":[{"type":"deletion-vector-v1","fields":[],"snapshot-id":-1,"sequence-number":-1,'
        b'"offset":4,"length":3,"properties":{"referenced-data-file":"file:/old/t/data/a.parquet",'
        b'"cardinality":"1"}}],"properties":{}}'
    )
    size = struct.pack("<i", len(footer))
    puffin = b"PFA1" + blob + b"PFA1" + footer + size + bytes(4) + b"PFA1"
    paths = MovedPaths("file:///old/t", "s3://lake/t")

    moved = moved_deletion_vectors(puffin, paths.of)

    blob_after = PuffinFile(moved).footer.blobs[0]
    assert moved[:11] == puffin[:11]
    assert blob_after.properties["referenced-data-file"] == "s3://lake/t/data/a.parquet"


@pytest.mark.parametrize("kind", ["ORC", "AVRO"])
def test_other_formats_of_position_deletes_are_rejected(kind) -> None:
    with pytest.raises(LakehouseError, match=rf"delete file d has the format {kind}"):
        moved_deletes("d", kind, b"", str)
