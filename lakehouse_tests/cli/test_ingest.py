"""`lakehouse ingest` and `demo`: what is printed of a delivery, and what makes them fail."""

import pytest

from lakehouse_tests.cli.conftest import put_fruits

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.long
def test_the_demo_says_what_it_did_and_what_to_try_next(lakehouse, home):
    ran = lakehouse("demo")
    assert (ran.code, ran.err) == (0, [])
    assert ran.out[:4] == [
        f"4 sample files delivered to {home}/inbox/fruits/",
        "Feed fruits: 4 files (fruit.csv, fruit_1.csv, fruit_2.csv, fruit_3.csv), nr_rows 180",
        "bronze.raw_fruits: 180 added, 180 rows in all",
        "silver.fruits: 155 inserted, 0 updated, 155 rows in all",
    ]
    assert any('lakehouse sql "SELECT * FROM silver.fruits' in line for line in ran.out)


@pytest.mark.long
def test_quarantined_rows_are_counted_and_shown_the_way_to(lakehouse, home):
    put_fruits(home, "a.csv", "1,Apple,false", "x2,Fig,false", "x3,Kiwi,true")
    ran = lakehouse("ingest", "fruits")
    assert (ran.code, ran.err) == (0, [])
    (said,) = [line for line in ran.out if "quarantined" in line]
    assert said.startswith(
        "silver.fruits: 2 of 3 rows were quarantined (66.7 %): castable_id 2; "
    )
    command = said.partition("look at them with: lakehouse ")[2].split()
    assert "(2 of 2 rows)" in lakehouse(*command).out


def test_a_rejected_file_is_one_line_and_the_others_go_on(lakehouse, home):
    put_fruits(home, "good.csv", "1,Apple,false")
    (home / "inbox/fruits/bad.csv").write_text("id,fruit\n1,Apple\n")
    (home / "inbox/fruits/worse.csv").touch()
    ran = lakehouse("ingest")
    assert ran.code == 1
    assert [line.split(" was rejected")[0] for line in ran.err] == [
        "lakehouse: bad.csv",
        "lakehouse: worse.csv",
    ]
    assert "silver.fruits: 1 inserted, 0 updated, 1 row in all" in ran.out


def test_a_blocked_table_names_the_rule_the_rows_and_a_sample(lakehouse, home):
    put_fruits(home, "a.csv", "1,Apple,false", "2,banana,false")
    ran = lakehouse("ingest", "fruits")
    assert ran.code == 1
    (said,) = ran.err
    assert "rule excluded_fruit_in_any_spelling" in said
    assert "1 of 2 rows" in said
    assert '"fruit": "banana"' in said


def test_nothing_waiting_is_said_and_is_no_failure(lakehouse, home):
    (home / "inbox" / "fruits").mkdir(parents=True)
    ran = lakehouse("ingest")
    missing = (
        f"Feed bnpl: no new file; files are put into the folder {home}/inbox/bnpl,"
        " which is not there yet"
    )
    assert (ran.code, ran.out) == (0, [missing, "Feed fruits: no new file in inbox/fruits/"])


@pytest.mark.long
def test_files_that_a_path_names_are_ingested_and_stay(lakehouse, home, tmp_path):
    given = tmp_path / "elsewhere"
    given.mkdir()
    (given / "a.csv").write_text("id,fruit,berry\n1,Apple,false\n")
    (given / "b.csv").write_text("id,fruit\n1,Apple\n")
    (given / "notes.txt").write_text(
        "of another kind, and of no concern while only its folder is named"
    )
    ran = lakehouse("ingest", "fruits", "--path", str(given))
    assert ran.code == 1
    assert ran.out[0] == "Feed fruits: 1 file (a.csv), nr_rows 1"
    assert ran.err[0].startswith("lakehouse: b.csv was rejected: ")
    assert len(ran.err) == 1
    assert sorted(path.name for path in given.iterdir()) == ["a.csv", "b.csv", "notes.txt"]
    assert len(list((home / "archive" / "fruits").rglob("a.*.csv"))) == 1
    assert len(list((home / "rejected" / "fruits").glob("b.*.csv"))) == 1
    again = lakehouse("ingest", "fruits", "--path", str(given / "a.csv"))
    assert again.code == 0
    assert "all of it ingested before" in again.out[0]
    assert (
        "notes.txt was rejected"
        in lakehouse("ingest", "fruits", "--path", str(given / "notes.txt")).err[0]
    )
    assert lakehouse("ingest", "fruits", "--path", str(given / "none")).code == 2
    assert "--path is of one feed" in lakehouse("ingest", "--path", str(given)).err[0]
