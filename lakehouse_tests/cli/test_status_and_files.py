"""`lakehouse status` and `files`: what there is, told without a JVM."""

import json

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.definitions import TABLES
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse_tests.cli.outcomes import record_of, records
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def fruits(lakehouse, filled_by):
    """A table that nobody declared: two partitions, two commits."""
    statements = (
        "CREATE NAMESPACE t; CREATE TABLE t.fruits (id bigint, fruit string, berry boolean)"
        " PARTITIONED BY (berry);INSERT INTO t.fruits VALUES (1, 'Apple', false), (2, 'Fig',"
        " false);INSERT INTO t.fruits VALUES (3, 'Grape', true)"
    )
    filled_by("fruits").bring_back(lambda: lakehouse("sql", "--write", statements))


def test_status_of_an_empty_home_lists_what_is_declared(lakehouse):
    found = records(lakehouse("status", "--format", "json"))
    assert [one["table"] for one in found] == sorted(TABLES)
    assert not any(one["exists"] for one in found)
    assert all(one["pending"] for one in found)


def test_status_tells_a_table_that_nobody_declared(lakehouse, fruits):
    found = record_of(lakehouse("status", "--format", "json"), "t.fruits")
    counts = {name: found[name] for name in ("declared", "rows", "snapshots", "files")}
    assert counts == {"declared": False, "rows": 3, "snapshots": 2, "files": 2}
    assert found["bytes"] > 0
    assert found["last_write"].endswith("Z")
    assert found["last_write_kind"] == "append"
    assert found["pending"] == []


@pytest.mark.usefixtures("sample_fruits")
def test_status_tells_the_last_write_and_the_last_checks(lakehouse):
    found = record_of(lakehouse("status", "--format", "json"), "silver.fruits")
    assert (found["declared"], found["rows"], found["last_write_kind"]) == (True, 155, "write")
    assert found["checks_failed"] == []
    # Each rule, and the share of refused rows, which is watched wherever rows may be refused.
    assert found["checks_passed"] == len(TABLES["silver.fruits"].rules) + 2
    assert found["pending"] == []


def test_files_lists_data_deletes_and_metadata_with_their_total(lakehouse, fruits):
    lakehouse(
        "sql", "--write", "ALTER TABLE t.fruits SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');"
        "DELETE FROM t.fruits WHERE id = 1",
    )  # fmt: skip
    found = records(lakehouse("files", "t.fruits", "--format", "json"))
    kinds = [one["kind"] for one in found]
    assert (kinds.count("data"), kinds.count("position deletes")) == (2, 1)
    assert {"table metadata", "manifest list", "manifest"} <= set(kinds)
    data = {one["partition"]["berry"]: one["rows"] for one in found if one["kind"] == "data"}
    assert data == {False: 2, True: 1}
    total = sum(one["bytes"] for one in found)
    last = lakehouse("files", "lakehouse.t.fruits").out[-1]
    assert last == f"({len(found)} files, {total / 1024:.1f} KiB in total)"


def test_a_damaged_table_does_not_hide_the_others(lakehouse, home):
    client = Catalog.of(settings_at(home)).client
    client.create_namespace("silver")
    for name in ("fruits", "others"):
        client.create_table(f"silver.{name}", Schema(NestedField(1, "id", LongType())))
    (metadata,) = (home / "warehouse/silver/fruits").glob("metadata/*.metadata.json")
    metadata.unlink()

    ran = lakehouse("status", "--format", "json")
    found = {one["table"]: one for one in json.loads("\n".join(ran.out))}
    assert ran.code == 1
    assert found["silver.others"]["snapshots"] == 0
    assert found["silver.others"]["damage"] is None
    assert str(metadata) in found["silver.fruits"]["damage"]
    assert ran.err == [f"lakehouse: {found['silver.fruits']['damage']}"]
    assert any(
        "silver.fruits" in line and "damaged" in line for line in lakehouse("status").out
    )
