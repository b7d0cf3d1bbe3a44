"""`lakehouse try`: what a run would make of a sample or of a file, with nothing written."""

from pathlib import Path

import pytest

from lakehouse_tests.assets.deliveries import HEADER, line
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def fruit_file(tmp_path: Path) -> str:
    """A file of fruits that is not delivered, with a row that is refused."""
    file = tmp_path / "more.csv"
    file.write_text("id,fruit,berry\n201,Quince,false\nx02,Medlar,false\n", encoding="utf-8")
    return str(file)


@pytest.fixture
def transactions(tmp_path: Path) -> str:
    """A file of transactions, one of which is refused."""
    file = tmp_path / "day.csv"
    rows = [line(1, "2026-03-01", customer=41), line(2, "2026-03-01", amount="-1")]
    file.write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    return str(file)


def written(home: Path) -> set[tuple[str, int]]:
    """What a home holds of files and when each was changed, but for logs and locks."""
    kept = ("warehouse", "inbox", "archive", "rejected", "staging", "dagster", "catalog.db")
    return {
        (str(file), file.stat().st_mtime_ns)
        for name in kept
        for file in (home / name, *(home / name).rglob("*"))
        if file.is_file()
    }


@pytest.mark.usefixtures("sample_fruits")
def test_a_sample_of_its_inputs_shows_rows_and_columns_and_writes_nothing(lakehouse, home):
    before = written(home)
    ran = lakehouse("try", "silver.fruits")

    assert (ran.code, ran.err) == (0, [])
    assert ran.out[:2] == [
        "Taken: 180 of 180 rows of bronze.raw_fruits; nothing is written.",
        "silver.fruits: 155 rows computed, 0 rejected",
    ]
    assert "(20 of 155 rows; --format json has all)" in ran.out
    assert "berry  | boolean" in ran.out
    assert written(home) == before


def test_a_file_is_tried_where_no_table_is_there_yet(lakehouse, home, fruit_file):
    ran = lakehouse("try", "silver.fruits", "--file", fruit_file)

    assert (ran.code, ran.err) == (0, [])
    assert ran.out[:3] == [
        "Taken: 2 of 2 rows of more.csv; nothing is written.",
        "bronze.raw_fruits: 2 rows computed",
        "silver.fruits: 2 rows computed, 1 rejected",
    ]
    assert "201 | Quince | false" in ran.out
    assert any('["castable_id"] | x02' in row for row in ran.out)
    assert not (home / "warehouse").exists()
    assert not (home / "dagster").exists()


def test_programs_get_the_rejected_rows_with_their_reasons(lakehouse, fruit_file):
    bronze, silver = records(
        lakehouse("try", "silver.fruits", "--file", fruit_file, "--format", "json")
    )

    assert (bronze["table"], bronze["computed_rows"]) == ("bronze.raw_fruits", 2)
    assert silver["rows"] == [{"id": 201, "fruit": "Quince", "berry": False}]
    (refused,) = silver["refused"]
    assert (refused["_reasons"], refused["id"], refused["_source_row"]) == (
        ["castable_id"],
        "x02",
        2,
    )
    assert silver["columns"][0] == {"name": "id", "type": "bigint"}
    assert "schema_as_declared" in silver["not_evaluated"]


@pytest.mark.long
def test_a_file_is_followed_through_the_tables_between(lakehouse, transactions):
    ran = lakehouse(
        "try", "gold.bnpl_daily_summary", "--file", transactions, "--format", "json"
    )

    assert [one["table"] for one in records(ran)] == [
        "bronze.bnpl_transactions_raw",
        "silver.bnpl_transactions_clean",
        "gold.bnpl_daily_summary",
    ]
    clean, summary = records(ran)[1:]
    assert (clean["computed_rows"], clean["refused_rows"]) == (2, 1)
    assert [row["transactions"] for row in summary["rows"]] == [1]


@pytest.mark.long
def test_personal_values_are_masked(lakehouse: Lakehouse, transactions: str) -> None:
    ran = lakehouse("try", "silver.bnpl_transactions_clean", "--file", transactions)
    printed = "\n".join([*ran.out, *ran.err])

    assert ran.code == 0
    assert "masked:" in printed
    assert "a@example.com" not in printed
