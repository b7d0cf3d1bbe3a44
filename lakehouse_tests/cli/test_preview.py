"""`lakehouse preview`: what a run of a whole table would change, with nothing published."""

from pathlib import Path

import pytest

from lakehouse_tests.assets.deliveries import HEADER, line
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark", "sample_fruits")
def test_the_difference_to_main_is_shown_and_nothing_published(lakehouse: Lakehouse) -> None:
    lakehouse("sql", "--write", "DELETE FROM silver.fruits WHERE fruit = 'Kiwi'")
    lakehouse("sql", "--write", "UPDATE silver.fruits SET id = 0 WHERE fruit = 'Apple'")
    before = records(lakehouse("history", "silver.fruits", "--format", "json"))
    ran = lakehouse("preview", "silver.fruits")

    assert (ran.code, ran.err) == (0, [])
    assert ran.out[0] == ("silver.fruits: 1 added, 0 removed, 1 changed; nothing is published.")
    assert [row.split(" ")[0] for row in ran.out[3:6]] == ["before", "after", "added"]
    assert records(lakehouse("history", "silver.fruits", "--format", "json")) == before


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_of_a_table_with_partitions_each_is_counted(lakehouse: Lakehouse, home: Path) -> None:
    inbox = home / "inbox" / "bnpl"
    inbox.mkdir(parents=True)
    rows = [line(n, f"2026-03-0{1 + n % 2}") for n in range(4)]
    (inbox / "days.csv").write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    assert lakehouse("ingest", "bnpl").code == 0
    delete = "DELETE FROM gold.bnpl_daily_summary WHERE transaction_date = DATE'2026-03-02'"
    lakehouse("sql", "--write", delete)
    (found,) = records(lakehouse("preview", "gold.bnpl_daily_summary", "--format", "json"))

    assert (found["added"], found["removed"], found["changed"]) == (1, 0, 0)
    assert found["by_partition"] == [
        {"transaction_date": "2026-03-02", "added": 1, "removed": 0, "changed": 0}
    ]
    assert [row["transactions"] for row in found["rows"]] == [2]
