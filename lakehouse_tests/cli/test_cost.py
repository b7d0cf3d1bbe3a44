"""`lakehouse cost`: what a table with history, deletes and a file left behind takes."""

from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.location_files import list_location
from lakehouse.maintenance.prices import PRICES
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, local_path

FRUITS = "silver.fruits"
LEFT_BEHIND = b"left behind by a write that was killed"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of the test's own: each file of it counts."""
    return tmp_path / "home"


def cost_of(lakehouse: Lakehouse, table: str, *arguments: str) -> dict[str, Any]:
    (record,) = records(lakehouse("cost", table, "--format", "json", *arguments))
    return record


def file_bytes(lakehouse: Lakehouse, *kinds: str) -> int:
    files = records(lakehouse("files", FRUITS, "--format", "json"))
    return sum(file["bytes"] for file in files if file["kind"] in kinds)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark", "sample_fruits")
def test_each_file_of_a_table_is_of_one_part_and_priced(
    lakehouse: Lakehouse, home: Path, tmp_path: Path
) -> None:
    table = Catalog.of(settings_at(home)).load(FRUITS)
    table.transaction().set_properties(MERGE_ON_READ).commit_transaction()
    rows = ", ".join(
        f"({number}, 'Fruit {number}', true, current_timestamp())"
        for number in range(9000, 9020)
    )
    assert lakehouse("sql", "--write", f"INSERT INTO {FRUITS} VALUES {rows}").code == 0
    # A whole file goes, which history keeps; of another file two rows do.
    whole_file = f"DELETE FROM {FRUITS} WHERE id < 9000"
    two_rows = f"DELETE FROM {FRUITS} WHERE id IN (9003, 9004)"
    assert lakehouse("sql", "--write", f"{whole_file}; {two_rows}").code == 0
    left_behind = local_path(table.location()) / "data" / "left_behind.parquet"
    left_behind.write_bytes(LEFT_BEHIND)

    cost = cost_of(lakehouse, FRUITS)
    listed = list_location(Catalog.of(settings_at(home)).load(FRUITS))
    assert cost["total_bytes"] == sum(file.size_bytes for file in listed.values())
    assert cost["orphaned_bytes"] == len(LEFT_BEHIND)
    assert cost["historical_bytes"] > 0
    data_bytes = file_bytes(lakehouse, "data")
    assert cost["live_bytes"] == pytest.approx(data_bytes * 18 / 20, abs=1)
    delete_bytes = file_bytes(lakehouse, "position deletes")
    assert delete_bytes > 0
    assert cost["live_bytes"] + cost["deleted_bytes"] == data_bytes + delete_bytes
    content_bytes = data_bytes + delete_bytes + cost["historical_bytes"]
    assert cost["written_bytes_30_days"] == content_bytes
    assert cost["storage_dollars_a_month"] == pytest.approx(cost["total_bytes"] / 1e9 * 0.025)
    assert cost["upkeep"] == []
    assert cost_of(lakehouse, "bronze.raw_fruits")["read_bytes_30_days"] > 0

    dearer = tmp_path / "prices.toml"
    dearer.write_text(PRICES.read_text().replace("price = 0.025", "price = 0.05"))
    dear = cost_of(lakehouse, FRUITS, "--prices", str(dearer))
    assert dear["storage_dollars_a_month"] == pytest.approx(2 * cost["storage_dollars_a_month"])

    assert lakehouse("maintain", FRUITS).code == 0
    kept = cost_of(lakehouse, FRUITS)
    (run,) = kept["upkeep"]
    assert "compact" in run["steps"]
    assert run["rewritten_bytes"] == kept["rewritten_bytes_30_days"] > 0
    assert run["dpu_hours"] == pytest.approx(run["seconds"] * 2 / 3600)
    reads_dollars = run["gets"] / 1000 * 0.0004
    assert run["dollars"] == pytest.approx(run["dpu_hours"] * 0.44 + reads_dollars)
    assert kept["deleted_bytes"] == 0
    printed = lakehouse("cost", FRUITS)
    assert (printed.code, printed.err) == (0, [])
    heading = " ".join(printed.out[0].split())
    assert "live | historical | deleted | orphaned | metadata" in heading
    assert printed.out[-1] == "(1 upkeep run in 30 days)"


@pytest.mark.unit
def test_what_was_never_recorded_is_unknown(lakehouse: Lakehouse, table_there: str) -> None:
    cost = cost_of(lakehouse, table_there)
    assert cost["read_bytes_30_days"] is None
    assert cost["metadata_bytes"] == cost["total_bytes"] > 0
    printed = lakehouse("cost")
    assert "unknown" in printed.out[2]
    assert printed.out[-1].startswith("(1 table, $0.0000 a month; $0.025 per GB-month")


@pytest.mark.unit
def test_a_damaged_table_hinders_no_other(
    lakehouse: Lakehouse, home: Path, table_there: str
) -> None:
    client = Catalog.of(settings_at(home)).client
    damaged = client.create_table("t.damaged", client.load_table(table_there).schema())
    local_path(damaged.metadata_location).unlink()
    ran = lakehouse("cost")
    assert ran.code == 0
    assert ran.out[-1].startswith("(1 table, ")
    assert ran.err[0].startswith("t.damaged is not counted: ")
    assert lakehouse("cost", "t.damaged").code == 1


@pytest.mark.unit
def test_a_table_or_file_that_is_not_there_is_named(lakehouse: Lakehouse) -> None:
    ran = lakehouse("cost", "silver.fruit")
    assert ran.code == 2
    assert ran.err[0].startswith("lakehouse: There is no table silver.fruit; did you mean")
    ran = lakehouse("cost", "--prices", "none.toml")
    assert ran.code == 2
    assert ran.err[0].startswith("lakehouse: There is no file of prices none.toml; expected")
