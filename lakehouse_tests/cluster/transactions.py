"""Transactions in a lakehouse: how they come, and what its tables must hold of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lakehouse.sample_data.bnpl.generator import Generated
from lakehouse.sample_data.bnpl.truth import DaySummary, assign_outcomes, daily_summary
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW, SUMMARY
from lakehouse_tests.cluster.lake import Lake

FEED = "bnpl"
TABLES = (RAW, CLEAN, QUARANTINE, SUMMARY, PROFILES)
STAMPS = frozenset({"_ingested_at", "_quarantined_at", "_source_modified_at", "updated_at"})
"""Columns that tell of the run, and not of the rows."""
Contents = Mapping[str, Counter[str]]


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
    """Compare all tables with the truth."""
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
    assert summary_of(rows[SUMMARY]) == _expected_summary(truth.daily_summary)
    assert len(rows[PROFILES]) == truth.customers


def summary_of(rows: Iterable[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    """Return the rows of the daily summary as text."""
    return {tuple(map(str, row.values())) for row in rows}


def summary_without(person: int, files: Sequence[Path]) -> set[tuple[str, ...]]:
    """Return the expected daily summary of everyone but a person."""
    rows = assign_outcomes(files)
    is_other = rows["customer_id"] != person
    return _expected_summary(daily_summary(rows[(rows["outcome"] == "clean") & is_other]))


def _expected_summary(summaries: Iterable[DaySummary]) -> set[tuple[str, ...]]:
    return summary_of(map(vars, summaries))
