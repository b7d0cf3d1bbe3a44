"""`lakehouse generate bnpl`: what it says, how it ends, and that nothing is half done."""

import json

import pytest

pytestmark = pytest.mark.unit

START = ("--start", "2026-01-05")


def test_it_writes_the_files_and_says_what_they_come_to(lakehouse, tmp_path):
    options = ("--days", "3", "--rows-per-day", "400", "--seed", "2")
    ran = lakehouse("generate", "bnpl", "--out", str(tmp_path / "out"), *START, *options)

    truth = json.loads((tmp_path / "out" / "truth.json").read_text())
    assert truth["arguments"] == {
        "start": "2026-01-05",
        "days": 3,
        "rows_per_day": 400,
        "seed": 2,
        "gzip": False,
    }
    totals = truth["totals"]
    assert (ran.code, ran.err) == (0, [])
    assert ran.out == [
        f"3 files with 1,200 rows in {tmp_path}/out/",
        (
            f"{tmp_path}/out/truth.json: {totals['clean']:,} clean, {totals['superseded']}"
            f" superseded, {totals['quarantined']} quarantined, {truth['customers']} customers"
        ),
    ]


def test_an_argument_that_cannot_be_is_wrong_usage(lakehouse, tmp_path):
    ran = lakehouse("generate", "bnpl", "--out", str(tmp_path / "out"), *START, "--days", "0")

    assert (ran.code, ran.out) == (2, [])
    assert ran.err == ["lakehouse: --days is 0; expected 1 to 321413."]
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_to_is_named(lakehouse, tmp_path):
    (tmp_path / "file").write_text("mine")

    ran = lakehouse("generate", "bnpl", "--out", str(tmp_path / "file" / "out"), *START)

    assert (ran.code, len(ran.err)) == (1, 1)
    assert f"Not a directory: '{tmp_path}/file/out" in ran.err[0]
