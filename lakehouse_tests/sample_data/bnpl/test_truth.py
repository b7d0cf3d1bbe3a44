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


def at(hour: int) -> dict[str, str]:
    return {"created_at": f"2026-01-05T{hour:02}:00:00+08:00"}


REFUSED = {"amount": "-1.00", **at(10)}
NEWER, OLDER = {"status": "REFUNDED", **at(12)}, {"status": "PENDING", **at(9)}


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        # The version that was made last wins, in whichever order they arrive.
        ([OLDER, NEWER], [], "superseded clean"),
        ([NEWER, OLDER], [], "clean superseded"),
        ([NEWER], [OLDER], "clean superseded"),
        # 10:00 in Kuala Lumpur is 02:00 in UTC.
        ([at(10), {"created_at": "2026-01-05T03:00:00Z"}], [], "superseded clean"),
        # Of one instant, the later file wins, and in it the later row.
        ([{}, {}], [{}, {}], "superseded superseded superseded clean"),
        # A refused row stays until a version that is not older is valid.
        ([REFUSED], [], "quarantined"),
        ([REFUSED], [at(9)], "quarantined clean"),
        ([REFUSED], [at(10)], "superseded clean"),
        ([REFUSED], [at(11)], "superseded clean"),
        ([at(10)], [REFUSED], "clean quarantined"),
        ([at(10), REFUSED, at(10)], [], "superseded superseded clean"),
        # One of unknown age is superseded by any valid version.
        ([{"created_at": ""}], [at(0)], "superseded clean"),
        ([{"created_at": "not a time"}], [at(0)], "superseded clean"),
        ([{"transaction_id": ""}, {"transaction_id": "TX-1"}], [{}], "quarantined quarantined clean"),
    ],
)  # fmt: skip
def test_of_the_versions_of_a_transaction_one_is_clean(files, one, two, expected):
    delivered = files(one=one, two=two)

    # The order of the files is that of their names.
    assert assign_outcomes(delivered[::-1])["outcome"].tolist() == expected.split()


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
def test_a_value_is_rejected_for_its_reasons(files, column, text, reasons):
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
    assert totals["clean"] == sum(day.transactions for day in least.truth.daily_summary)
