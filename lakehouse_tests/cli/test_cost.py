"""`lakehouse cost`: what a table with history, deletes and a file left behind takes."""

from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse_tests.cli.conftest import Lakehouse, put_fruits
from lakehouse_tests.cli.outcomes import records
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, local_path

FRUITS = "silver.fruits"
LEFT_BEHIND = b"left behind by a write that was killed"


@pytest.fixture
def deletes(lakehouse: Lakehouse, home: Path, filled_by) -> Lakehouse:
    """A table with history, deletes in part of a file, and an orphaned file."""

    def fill() -> None:
        put_fruits(home, "1.csv", "1,Apple,false", "2,Fig,false")
        assert lakehouse("ingest", "fruits").code == 0
        table = Catalog.of(settings_at(home)).load(FRUITS)
        table.transaction().set_properties(MERGE_ON_READ).commit_transaction()
        rows = ", ".join(
            f"({number}, 'Fruit {number}', true, current_timestamp())"
            for number in range(9000, 9020)
        )
        statements = (
            f"INSERT INTO {FRUITS} VALUES {rows}",
            f"DELETE FROM {FRUITS} WHERE id < 9000",
            f"DELETE FROM {FRUITS} WHERE id IN (9003, 9004)",
        )
        assert lakehouse("sql", "--write", "; ".join(statements)).code == 0
        orphan = local_path(table.location()) / "data" / "left_behind.parquet"
        orphan.write_bytes(LEFT_BEHIND)

    filled_by("deletes").bring_back(fill)
    return lakehouse


def cost_of(lakehouse: Lakehouse, table: str, *arguments: str) -> dict[str, Any]:
    (record,) = records(lakehouse("cost", table, "--format", "json", *arguments))
    return record


def file_bytes(lakehouse: Lakehouse, *kinds: str) -> int:
    files = records(lakehouse("files", FRUITS, "--format", "json"))
    return sum(file["bytes"] for file in files if file["kind"] in kinds)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_each_file_is_in_one_part(deletes: Lakehouse, home: Path) -> None:
    cost = cost_of(deletes, FRUITS)
    listed = list_location(Catalog.of(settings_at(home)).load(FRUITS))
    data_bytes = file_bytes(deletes, "data")
    delete_bytes = file_bytes(deletes, "position deletes")
    assert cost["total_bytes"] == sum(file.size_bytes for file in listed.values())
    assert cost["orphaned_bytes"] >= len(LEFT_BEHIND)
    assert cost["historical_bytes"] > 0
    assert cost["live_bytes"] == pytest.approx(data_bytes * 18 / 20, abs=1)
    assert cost["live_bytes"] + cost["deleted_bytes"] == data_bytes + delete_bytes


@pytest.mark.unit
def test_an_empty_table_is_its_metadata(lakehouse: Lakehouse, table_there: str) -> None:
    cost = cost_of(lakehouse, table_there)
    assert cost["metadata_bytes"] == cost["total_bytes"] > 0
    printed = lakehouse("cost")
    assert printed.out[-1].startswith("(1 table, $0.0000 a month; $0.025 per GB-month")


@pytest.mark.unit
def test_a_damaged_table_hinders_no_other(lakehouse, home, table_there):
    client = Catalog.of(settings_at(home)).client
    damaged = client.create_table("t.damaged", client.load_table(table_there).schema())
    local_path(damaged.metadata_location).unlink()
    ran = lakehouse("cost")
    assert ran.code == 0
    assert ran.out[-1].startswith("(1 table, ")
    assert ran.err[0].startswith("t.damaged is not counted: ")
    assert lakehouse("cost", "t.damaged").code == 1
