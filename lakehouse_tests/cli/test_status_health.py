"""`lakehouse status` says of a table's files what is worth saying, without Spark."""

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.cli.table_status import TableStatus
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse_tests.cli.outcomes import records
from lakehouse_tests.conftest import settings_at


def test_status_says_what_is_worth_saying_of_files(lakehouse, home):
    client = Catalog.of(settings_at(home)).client
    client.create_namespace("t")
    for name, files in (("few", 5), ("many", 6)):
        table = client.create_table(f"t.{name}", Schema(NestedField(1, "id", LongType())))
        for number in range(files):
            table.append(pa.table({"id": [number]}))
    found = {one["table"]: one for one in records(lakehouse("status", "--format", "json"))}
    assert (found["t.few"]["small_files"], found["t.many"]["small_files"]) == (0, 5)
    out = lakehouse("status").out
    assert "t.few: not declared" in out
    assert any(line.startswith("t.many: not declared; small files 5; not") for line in out)


def test_status_tells_delete_files_also_where_files_are_few():
    status = TableStatus("t.fruits", declared=False, exists=True, small_files=4, delete_files=3)
    assert status.health == "deletes 3"
