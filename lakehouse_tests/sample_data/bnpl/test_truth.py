"""The expected tables of files written by hand and of generated ones."""

from pathlib import Path

import pytest

from lakehouse.sample_data.bnpl.truth import DaySummary, Truth, assign_outcomes, truth_of

HEADER = (
    "transaction_id,customer_id,merchant_id,merchant_category,amount,currency,installments,status,"
    "transaction_date,created_at,customer_email,region"
)
DEFAULTS = {
    "transaction_id": "1", "customer_id": "7", "merchant_id": "M00001", "merchant_category": "toys",
    "amount": "10.00", "currency": "MYR", "installments": "3", "status": "APPROVED",
    "transaction_date": "2026-01-05", "created_at": "2026-01-05T10:00:00+08:00",
    "customer_email": "customer7@example.com", "region": "Penang",
}  # fmt: skip
ONE = "bnpl_2026-01-05.csv"
TWO = "bnpl_2026-01-06.csv"


@pytest.fixture
def files(tmp_path: Path):
    def write(**rows: list[dict[str, str]]) -> list[Path]:
        names = {"one": ONE, "two": TWO}
        return [write_file(tmp_path / names[number], those) for number, those in rows.items()]

    return write


def write_file(path: Path, rows: list[dict[str, str]]) -> Path:
    lines = [",".join({**DEFAULTS, **row}.values()) for row in rows]
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def outcomes(files: list[Path]) -> list[str]:
    return assign_outcomes(files)["outcome"].tolist()


def at(hour: int) -> dict[str, str]:
    return {"created_at": f"2026-01-05T{hour:02}:00:00+08:00"}


def test_the_version_made_last_wins_in_whichever_order_they_come(files):
    newer, older = {"status": "REFUNDED", **at(12)}, {"status": "PENDING", **at(9)}

    assert outcomes(files(one=[older, newer])) == ["superseded", "clean"]
    assert outcomes(files(one=[newer, older])) == ["clean", "superseded"]
    assert outcomes(files(one=[newer], two=[older])) == ["clean", "superseded"]


def test_moments_are_compared_and_not_their_texts(files):
    # 10:00 in Kuala Lumpur is 02:00 in UTC.
    assert outcomes(files(one=[{**at(10)}, {"created_at": "2026-01-05T03:00:00Z"}])) == [
        "superseded",
        "clean",
    ]


def test_of_one_moment_the_later_file_wins_and_in_it_the_later_row(files):
    assert outcomes(files(one=[{}, {}], two=[{}, {}])) == ["superseded"] * 3 + ["clean"]
    both = files(one=[{}], two=[{}])
    assert outcomes(list(reversed(both))) == ["superseded", "clean"]


def test_a_refused_row_stays_until_a_version_that_is_not_older_is_valid(files):
    refused = {"amount": "-1.00", **at(10)}

    assert outcomes(files(one=[refused])) == ["quarantined"]
    assert outcomes(files(one=[refused], two=[at(9)])) == ["quarantined", "clean"]
    assert outcomes(files(one=[refused], two=[at(10)])) == ["superseded", "clean"]
    assert outcomes(files(one=[refused], two=[at(11)])) == ["superseded", "clean"]
    assert outcomes(files(one=[at(10)], two=[refused])) == ["clean", "quarantined"]
    assert outcomes(files(one=[at(10), refused, at(10)])) == [
        "superseded",
        "superseded",
        "clean",
    ]


@pytest.mark.parametrize("created_at", ["", "not a time"])
def test_a_refused_row_of_unknown_age_gives_way_to_any_valid_version(files, created_at):
    assert outcomes(files(one=[{"created_at": created_at}], two=[at(0)])) == [
        "superseded",
        "clean",
    ]


def test_a_row_without_a_readable_id_is_corrected_by_none(files):
    assert outcomes(files(one=[{"transaction_id": ""}, {"transaction_id": "TX-1"}], two=[{}])) == [
        "quarantined", "quarantined", "clean",
    ]  # fmt: skip


def test_a_moved_transaction_counts_on_its_new_day_alone(files):
    found = truth_of(files(one=[{}], two=[{"transaction_date": "2026-01-04", **at(11)}]))

    assert found.clean_by_day == {"2026-01-04": 1}


@pytest.mark.parametrize(
    ("column", "text", "reasons"),
    [
        ("transaction_id", "", "not_null"),
        ("transaction_id", "TX-1", "castable"),
        ("transaction_id", "9223372036854775808", "castable"),
        ("transaction_id", "9223372036854775807", ""),
        ("customer_id", "", "not_null"),
        ("customer_id", "guest", "castable"),
        ("merchant_id", "", "not_null"),
        ("amount", "", "not_null"),
        ("amount", "n/a", "castable"),
        ("amount", "1.005", "castable"),
        ("amount", "100000000.00", "castable"),
        ("amount", "99999999.99", ""),
        ("amount", "5", ""),
        ("amount", "0.00", "positive"),
        ("amount", "-0.01", "positive"),
        ("currency", "", "not_null"),
        ("currency", "myr", "accepted"),
        ("installments", "", "not_null"),
        ("installments", "six", "castable"),
        ("installments", "2", "accepted"),
        ("status", "", "not_null"),
        ("status", "UNKNOWN", "accepted"),
        ("transaction_date", "", "not_null"),
        ("transaction_date", "2026-02-30", "castable"),
        ("transaction_date", "20260105", "castable"),
        ("transaction_date", "2019-12-31", "date_in_range"),
        ("transaction_date", "2020-01-01", ""),
        ("transaction_date", "2999-01-01", "date_in_range"),
        ("created_at", "", "not_null"),
        ("created_at", "2026-02-30T10:00:00+08:00", "castable"),
        ("customer_email", "nobody", ""),
        ("region", "", ""),
    ],
)
def test_a_value_is_refused_for_its_reasons(files, column, text, reasons):
    found = truth_of(files(one=[{column: text}]))

    named = [
        reason if reason == "date_in_range" else f"{reason}_{column}"
        for reason in reasons.split()
    ]
    assert set(found.quarantined_by_reason) == set(named)
    assert found.totals["clean"] == (not reasons)


def test_the_truth_of_two_files_worked_out_by_hand(files):
    found = truth_of(
        files(
            one=[
                {"transaction_id": "1", "status": "PENDING", **at(9)},
                {"transaction_id": "2", "amount": "0.01", "merchant_id": "M00002"},
                {"transaction_id": "3", "amount": "-5.00", "status": "UNKNOWN"},
                {
                    "transaction_id": "4",
                    "amount": "20.00",
                    "customer_id": "8",
                    "status": "PENDING",
                },
            ],
            two=[
                {"transaction_id": "1", "status": "DECLINED", **at(11)},
                {"transaction_id": "4", "amount": "x", "customer_id": "8", **at(12)},
                {
                    "transaction_id": "5",
                    "amount": "7.50",
                    "currency": "SGD",
                    "status": "REFUNDED",
                    "customer_id": "8",
                },
            ],
        )
    )

    assert found == Truth(
        rows_by_file={ONE: 4, TWO: 3},
        totals={"bronze": 7, "clean": 4, "superseded": 1, "quarantined": 2},
        quarantined_by_reason={
            "castable_amount": 1, "accepted_status": 1, "positive_amount": 1,
        },
        clean_by_day={"2026-01-05": 4},
        customers=2,
        daily_summary=[
            # 30.01 / 3 = 10.00333…
            DaySummary("2026-01-05", "MYR", 3, 1, 1, "30.01", "0.01", "10.0033", 0.5, 2, 2),
            DaySummary("2026-01-05", "SGD", 1, 0, 0, "7.50", "0.00", "7.5000", None, 1, 1),
        ],
    )  # fmt: skip


def test_no_row_is_lost(least):
    totals = least.truth.totals

    assert totals["bronze"] == totals["clean"] + totals["superseded"] + totals["quarantined"]
    assert totals["clean"] == sum(least.truth.clean_by_day.values())
    assert totals["clean"] == sum(day.transactions for day in least.truth.daily_summary)
