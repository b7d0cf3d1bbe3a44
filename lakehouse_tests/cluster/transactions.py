"""Weeks of transactions in a lakehouse: how they come, and what its tables must hold of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import pandas as pd

from lakehouse.cli.project.sample_data import FIRST_DAY
from lakehouse.sample_data.bnpl.generator import Generated, generate
from lakehouse.sample_data.bnpl.truth import DaySummary, assign_outcomes, daily_summary
from lakehouse_tests.assets import bnpl_oracle
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW, SUMMARY
from lakehouse_tests.cluster.lake import Lake

FEED = "bnpl"
WEEKS = 4
DAYS_A_WEEK = 7
TABLES = (RAW, CLEAN, QUARANTINE, SUMMARY, PROFILES)
STAMPS = frozenset({"_ingested_at", "_quarantined_at", "_source_modified_at", "updated_at"})
"""Columns that tell of the run, and not of the rows."""
Contents = Mapping[str, Counter[str]]


def generate_weeks(folder: Path, rows_per_day: int = 150) -> Generated:
    """Write a file for each day, with two rows of every kind of defect.

    All days are past: one that is after the day of its ingest is refused, and the truth, which
    knows of no clock, has it in silver and gold.
    """
    return generate(
        folder, FIRST_DAY, days=WEEKS * DAYS_A_WEEK, rows_per_day=rows_per_day, seed=1
    )


def files_of_week(generated: Generated, week: int) -> tuple[Path, ...]:
    """Return the files of a week, counted from 0."""
    return generated.files[week * DAYS_A_WEEK : (week + 1) * DAYS_A_WEEK]


def contents(lake: Lake) -> Contents:
    """Return the rows of the tables, without what tells of the run."""
    return {name: Counter(map(as_text, lake.rows(name))) for name in TABLES}


def without(
    lake: Lake, is_meant: Callable[[Mapping[str, Any]], bool], tables: Iterable[str]
) -> Contents:
    """Return the rows of some tables but for those that are meant, as `contents` does."""
    rest = {}
    for name in tables:
        rows = [row for row in lake.rows(name) if not is_meant(row)]
        rest[name] = Counter(map(as_text, rows))
    return rest


def as_text(row: Mapping[str, Any]) -> str:
    """Return a row as text that is the same for rows that are."""
    shown = {}
    for name, value in row.items():
        if name not in STAMPS:
            # Of a map PyArrow gives a list, in the order in which it was written.
            shown[name] = sorted(value, key=str) if isinstance(value, list) else value
    return repr(shown)


def check_truth(lake: Lake, generated: Generated) -> None:
    """Compare all tables with the truth, and each row with the result of pandas."""
    truth = generated.truth
    rows = {name: lake.rows(name) for name in TABLES}
    totals = {"bronze": RAW, "clean": CLEAN, "quarantined": QUARANTINE}
    assert {what: len(rows[name]) for what, name in totals.items()} == {
        what: truth.totals[what] for what in totals
    }
    by_file = Counter(row["_source_file"] for row in rows[RAW])
    assert by_file == truth.rows_by_file
    reasons = Counter(reason for row in rows[QUARANTINE] for reason in row["_reasons"])
    assert reasons == truth.quarantined_by_reason
    by_day = Counter(row["transaction_date"].isoformat() for row in rows[CLEAN])
    assert by_day == truth.clean_by_day
    assert summary_of(rows[SUMMARY]) == expected_summary(truth.daily_summary)
    clean = bnpl_oracle.clean_rows(generated.files)
    assert set(map(_silver_row, rows[CLEAN])) == {*_silver_rows(clean)}
    assert profiles(rows[PROFILES]) == bnpl_oracle.profiles(clean)


def summary_of(rows: Iterable[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    """Return the rows of the daily summary as text."""
    return {tuple(map(str, row.values())) for row in rows}


def expected_summary(summaries: Iterable[DaySummary]) -> set[tuple[str, ...]]:
    return summary_of(map(vars, summaries))


def summary_without(person: int, files: Sequence[Path]) -> set[tuple[str, ...]]:
    """Return the expected daily summary of everyone but a person."""
    rows = assign_outcomes(files)
    is_other = rows["customer_id"] != person
    return expected_summary(daily_summary(rows[(rows["outcome"] == "clean") & is_other]))


def profiles(rows: Iterable[Mapping[str, Any]]) -> dict[int, tuple]:
    """Return the rows of the profiles as pandas' are."""
    found = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name not in STAMPS}
        for name in ("first_transaction_date", "last_transaction_date"):
            values[name] = values[name].isoformat()
        for name in ("total_amount", "average_amount"):
            values[name] = dict(values[name])
        customer, *figures = values.values()
        found[customer] = tuple(figures)
    return found


_TEXTS = (
    "merchant_id",
    "merchant_category",
    "currency",
    "payment_method",
    "status",
    "customer_email",
    "region",
)


def _silver_row(row: Mapping[str, Any]) -> tuple:
    return (
        row["transaction_id"],
        row["customer_id"],
        row["amount"],
        row["installments"],
        row["transaction_date"].isoformat(),
        row["created_at"].astimezone(UTC),
        row["_source_file"],
        row["_source_row"],
        *(row[name] for name in _TEXTS),
    )


def _silver_rows(clean: pd.DataFrame) -> Iterable[tuple]:
    known = clean.astype(object).where(clean.notna(), None)
    for row in known.to_dict("records"):
        yield (
            int(row["transaction_id"]),
            row["customer"],
            row["money"],
            int(row["installments"]),
            row["transaction_date"],
            row["moment"].to_pydatetime(),
            row["file"],
            row["row"],
            *(row[name] for name in _TEXTS),
        )
