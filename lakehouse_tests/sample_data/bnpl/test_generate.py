"""The generated files: bytes, names, dates, and a folder that is in use."""

from datetime import date
from pathlib import Path

import pytest

from lakehouse.sample_data.bnpl import generator
from lakehouse.sample_data.bnpl.arguments import BadArguments
from lakehouse.sample_data.bnpl.generator import FolderTaken, generate
from lakehouse_tests.sample_data.bnpl.delivered import START, delivered

COLUMNS = (
    "transaction_id,customer_id,merchant_id,merchant_category,amount,currency,installments,payment_method,status,"
    "transaction_date,created_at,customer_email,region"
)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_arguments_make_the_same_bytes(tmp_path):
    generate(tmp_path / "a", START, days=4, rows_per_day=200, seed=7)
    generate(tmp_path / "b", START, days=4, rows_per_day=200, seed=7)

    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.long
def test_compressed_files_are_the_same_bytes_too_and_hold_the_same_rows(tmp_path):
    plain = generate(tmp_path / "plain", START, days=2, rows_per_day=200, seed=7)
    packed = [
        generate(tmp_path / name, START, days=2, rows_per_day=200, seed=7, gzip=True)
        for name in "ab"
    ]

    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    columns = ["transaction_id", "amount", "created_at", "row"]
    assert delivered(tmp_path / "a")[columns].equals(delivered(tmp_path / "plain")[columns])
    assert packed[0].truth.daily_summary == plain.truth.daily_summary


def test_there_is_a_file_for_each_day_and_as_many_rows_as_asked_for(tmp_path):
    made = generate(tmp_path, date(2026, 2, 27), days=3, rows_per_day=400, seed=1)

    names = ["bnpl_2026-02-27.csv", "bnpl_2026-02-28.csv", "bnpl_2026-03-01.csv"]
    assert [path.name for path in made.files] == names
    assert len(delivered(tmp_path)) == 1200
    assert made.truth.rows_by_file == {
        name: len(delivered(tmp_path).query("file == @name")) for name in names
    }


@pytest.mark.parametrize(("days", "rows_per_day"), [(1, 1), (1, 50), (2, 1), (40, 1)])
def test_few_days_and_few_rows_are_generated_too(tmp_path, days, rows_per_day):
    made = generate(tmp_path, date(2020, 1, 1), days=days, rows_per_day=rows_per_day, seed=5)

    assert len(made.files) == days
    assert made.truth.totals["bronze"] == days * rows_per_day
    assert min(made.truth.rows_by_file.values()) >= (1 if days == 1 else 0)


def test_files_are_dated_by_their_days(tmp_path):
    made = generate(tmp_path, START, days=3, rows_per_day=10, seed=1)

    # Midnight in Kuala Lumpur, at the end of 5 January, is 16:00 in UTC.
    assert [path.stat().st_mtime for path in made.files] == [
        1767628800.0 + 86400 * day for day in range(3)
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows_per_day": 0}, "rows-per-day is 0; expected 1 to"),
        ({"seed": -1}, "seed is -1; expected 0 to"),
        (
            {"start": date(2019, 12, 31)},
            "start is 2019-12-31; expected a day from 2020-01-01 to",
        ),
        ({"start": date(2899, 12, 31), "days": 2}, "start is 2899-12-31; expected a day from"),
    ],
)
def test_arguments_that_cannot_be_are_named_and_nothing_is_made(tmp_path, wrong, message):
    with pytest.raises(BadArguments, match=message):
        generate(
            tmp_path / "out",
            **{"start": START, "days": 1, "rows_per_day": 1, "seed": 1, **wrong},
        )

    assert not (tmp_path / "out").exists()


def test_files_of_the_same_arguments_are_written_again(tmp_path):
    made = generate(tmp_path, START, days=2, rows_per_day=50, seed=1)
    before = contents(tmp_path)
    made.files[0].write_text("damaged")
    made.files[1].unlink()

    generate(tmp_path, START, days=2, rows_per_day=50, seed=1)

    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "other", [{"seed": 2}, {"days": 1}, {"rows_per_day": 51}, {"gzip": True}]
)
def test_a_folder_with_files_of_other_arguments_is_left_as_it_is(tmp_path, other):
    arguments = {"start": START, "days": 2, "rows_per_day": 50, "seed": 1}
    generate(tmp_path, **arguments)
    before = contents(tmp_path)

    with pytest.raises(FolderTaken, match=r"holds bnpl_2026-01-05.csv and 2 more"):
        generate(tmp_path, **{**arguments, **other})

    assert contents(tmp_path) == before


def test_stopped_it_leaves_nothing_behind(tmp_path, monkeypatch):
    def stop(_files: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(generator, "truth_of", stop)

    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path, START, days=3, rows_per_day=50, seed=1)

    assert list(tmp_path.iterdir()) == []
