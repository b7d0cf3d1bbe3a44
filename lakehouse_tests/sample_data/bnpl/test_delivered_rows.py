"""Every kind of defect is generated, in the amounts of the rates."""

import pandas as pd
import pytest

from lakehouse.sample_data.bnpl.defects import DEFECTS
from lakehouse.sample_data.bnpl.truth import REASONS, assign_outcomes
from lakehouse_tests.sample_data.bnpl.delivered import sample_files

SET = ["file", "row"]


@pytest.fixture(scope="module")
def evaluated(least, lines) -> pd.DataFrame:
    outcomes = assign_outcomes(sample_files(least.files[0].parent))[[*SET, "is_valid"]]
    return lines.merge(outcomes, on=SET, validate="one_to_one")


@pytest.fixture(scope="module")
def pairs(evaluated) -> pd.DataFrame:
    known = evaluated[evaluated["transaction_id"].str.fullmatch(r"\d{16,18}")]
    both = known.merge(known, on="transaction_id", suffixes=("", "_later"))
    differ = (both["status"] != both["status_later"]) | (
        both["created_at"] != both["created_at_later"]
    )
    return both[(both["file"] < both["file_later"]) & differ]


def test_rows_are_rejected_for_every_reason(least):
    assert set(least.truth.quarantined_by_reason) == set(REASONS)


def test_a_line_comes_again_in_a_later_file(lines):
    once = lines.drop_duplicates([column for column in lines if column != "row"])

    assert once.drop(columns=SET).duplicated().sum() >= 10


def test_newer_versions_come_later(pairs):
    settled = pairs[
        (pairs["status"] == "PENDING") & (pairs["created_at"] < pairs["created_at_later"])
    ]

    assert {"APPROVED", "DECLINED", "REFUNDED"} <= set(settled["status_later"])


def test_a_transaction_has_three_versions(evaluated):
    assert (
        evaluated.query("transaction_id != ''")
        .groupby("transaction_id")["created_at"]
        .nunique()
        .max()
        == 3
    )


@pytest.mark.parametrize("direction", ["before", "after"])
def test_a_version_moves_to_another_day(pairs, direction):
    valid = pairs[pairs["is_valid"] & pairs["is_valid_later"]]
    old, new = valid["transaction_date"], valid["transaction_date_later"]

    assert (new < old if direction == "before" else new > old).any()


def test_transactions_come_days_late(evaluated):
    counted = evaluated[evaluated["is_valid"]]
    late = counted[counted["transaction_date"] < counted["file"].str[5:15]].drop_duplicates(
        "transaction_id"
    )
    alone = late[
        ~late["transaction_id"].isin(
            counted["transaction_id"][counted["transaction_id"].duplicated()]
        )
    ]

    assert len(alone) >= 10


def test_each_defect_is_there_and_its_row_is_rejected(evaluated):
    for name, texts in DEFECTS.items():
        has_defect = pd.Series(True, index=evaluated.index)
        for column, choices in texts.items():
            has_defect &= evaluated[column].isin(choices)
        broken = evaluated[has_defect]
        assert len(broken) >= 1, name
        assert name == "malformed e-mail" or not broken["is_valid"].any(), name


def test_the_amounts_are_those_of_the_rates(least):
    # Of 3,000 rows: 1 of each of 28 defects, 27 of which are refused, and 15 second versions
    # that are; copies add some.
    assert 42 <= least.truth.totals["quarantined"] <= 50
    # 60 + 30 + 30 + 6 + 6 + 15 second versions, 12 third ones, 30 copies, and 180 updated
    # transactions less.
    added = 180 + 30 + 30 + 6 + 6 + 15 + 12 + 30
    assert added - 10 <= least.truth.totals["superseded"] <= added
