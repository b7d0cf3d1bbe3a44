"""`lakehouse quarantine` counts quarantined rows by rule and by file, and shows some; no JVM."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.definitions import TABLES
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit

FRUITS, TRANSACTIONS = "silver.fruits", "silver.bnpl_transactions_clean"
MARCH, APRIL = datetime(2026, 3, 1, 8, tzinfo=UTC), datetime(2026, 4, 1, 8, tzinfo=UTC)


def quarantine_rows(settings: Settings, table: str, *rows: Mapping[str, Any]) -> None:
    """Put rows into the quarantine of a table, in one commit."""
    engine, quarantine = open_engine(settings), TABLES[table].quarantine
    assert quarantine is not None
    ensure(engine, quarantine)
    loaded = engine.catalog.load(quarantine.name)
    loaded.append(pa.Table.from_pylist(list(rows), loaded.schema().as_arrow()))


def fruit(id_: str, name: str | None, at: datetime, file: str, *reasons: str) -> dict[str, Any]:
    return {
        "id": id_,
        "fruit": name,
        "_row_key": f"{file} {id_}",
        "_reasons": reasons,
        "_source_file": file,
        "_source_row": 1,
        "_quarantined_at": at,
    }


@pytest.fixture
def quarantined_fruits(settings: Settings) -> None:
    """Three quarantined fruits of two files, in two commits."""
    quarantine_rows(
        settings,
        FRUITS,
        fruit("x", "Plum", MARCH, "a.csv", "castable_id"),
        fruit("y", None, MARCH, "a.csv", "castable_id", "not_null_fruit"),
    )
    quarantine_rows(settings, FRUITS, fruit("z", "Kiwi", APRIL, "b.csv", "castable_id"))


@pytest.mark.usefixtures("quarantined_fruits")
def test_quarantined_rows_are_counted_by_table(lakehouse) -> None:
    assert lakehouse("quarantine").out == [
        "table                          | rows | files | first rejected at    |"
        " last rejected at     | rules",
        "-------------------------------+------+-------+----------------------+"
        "----------------------+--------------------------------",
        f"{TRANSACTIONS} |    0 |     0 |                      |                      |",
        "silver.fruits                  |    3 |     2 | 2026-03-01 08:00:00Z |"
        " 2026-04-01 08:00:00Z | castable_id 3, not_null_fruit 1",
        "(2 tables)",
    ]


@pytest.mark.usefixtures("quarantined_fruits")
def test_options_before_the_table_apply(lakehouse) -> None:
    (found,) = records(lakehouse("quarantine", "--format", "json", FRUITS))
    assert found["rows"] == 3
    assert lakehouse("quarantine", "--format", "json", "clear", FRUITS, "--why", "x").code == 2


@pytest.mark.usefixtures("quarantined_fruits")
def test_quarantined_rows_of_a_table_are_counted_by_rule_and_by_file(lakehouse) -> None:
    out = lakehouse("quarantine", FRUITS).out
    cells = [[cell.strip() for cell in line.split("|")] for line in out[2:6]]
    march, april = "2026-03-01T08:00:00Z", "2026-04-01T08:00:00Z"
    assert out[0].endswith("| first rejected at    | last rejected at")
    assert cells == [
        ["rule", "castable_id", "3", march, april],
        ["rule", "not_null_fruit", "1", march, march],
        ["file", "a.csv", "2", march, march],
        ["file", "b.csv", "1", april, april],
    ]
    assert out[-1].startswith("lakehouse quarantine replay silver.fruits: evaluates ")


@pytest.mark.long
@pytest.mark.usefixtures("quarantined_fruits")
def test_rows_are_shown_of_one_rule_and_of_one_file(lakehouse) -> None:
    def shown(*options: str) -> set[str]:
        (found,) = records(lakehouse("quarantine", FRUITS, *options, "--format", "json"))
        assert found["rows"] == 3
        return {row["id"] for row in found["sample"]}

    assert shown() == {"x", "y", "z"}
    assert shown("--rule", "not_null_fruit") == {"y"}
    assert shown("--file", "b.csv") == {"z"}
    assert len(shown("--limit", "1")) == 1
    none = lakehouse("quarantine", FRUITS, "--rule", "not_null_fruit", "--file", "b.csv").out
    assert none[-1] == "No quarantined row matches."


def test_values_of_people_are_masked(lakehouse, settings: Settings) -> None:
    quarantine_rows(
        settings,
        TRANSACTIONS,
        {
            "customer_id": "4711",
            "customer_email": "ann@example.com",
            "region": "ann's own",
            "amount": "12.505",
            "_row_key": "k",
            "_reasons": ["castable_amount"],
            "_source_file": None,
            "_quarantined_at": MARCH,
        },
    )
    for form in ("table", "json"):
        said = "\n".join(lakehouse("quarantine", TRANSACTIONS, "--format", form).out)
        assert "castable_amount" in said
        assert "masked:" in said
        assert not any(value in said for value in ("4711", "ann"))
        # What is wrong is to be seen.
        assert "12.505" in said


def test_a_table_that_no_run_made_yet_is_said_to_be_so(lakehouse) -> None:
    ran = lakehouse("quarantine", FRUITS)
    assert ran.code == 1
    assert "silver.fruits_quarantine is declared, and not there yet." in ran.err[0]


@pytest.mark.parametrize("words", [(), ("replay",)])
def test_a_table_without_a_quarantine_is_an_error_that_names_those_with_one(lakehouse, words):
    ran = lakehouse("quarantine", *words, "gold.customer_profiles")
    assert ran.code == 2
    assert "gold.customer_profiles has no quarantine" in ran.err[0]
    assert "expected one of" in ran.err[0]
