"""Compute the expected tables for delivered files, independently of the generator."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

COLUMNS = (
    "transaction_id",
    "customer_id",
    "merchant_id",
    "amount",
    "currency",
    "installments",
    "status",
    "transaction_date",
    "created_at",
)
TYPED = (
    "transaction_id",
    "customer_id",
    "amount",
    "installments",
    "transaction_date",
    "created_at",
)
"""The columns that are cast from text; all of COLUMNS are required."""
ACCEPTED: Mapping[str, tuple[object, ...]] = {
    "currency": ("MYR", "SGD", "IDR", "THB", "PHP"),
    "installments": (1, 3, 6, 12),
    "status": ("PENDING", "APPROVED", "DECLINED", "REFUNDED"),
}
FIRST_DATE = date(2020, 1, 1)
LAST_DATE = date(2899, 12, 31)
"""Represents today: files contain no date between the last generated day and 2999."""
REASONS = (
    *(f"castable_{column}" for column in TYPED),
    *(f"not_null_{column}" for column in COLUMNS),
    *(f"accepted_{column}" for column in ACCEPTED),
    "positive_amount",
    "date_in_range",
)
_EPOCH = date(1970, 1, 1)
_LARGEST_BIGINT = "9223372036854775807"
_DATE = r"\d{4}-\d\d-\d\d"
_TIMESTAMP = rf"^{_DATE}T\d\d:\d\d:\d\d(\.\d{{1,6}})?(Z|[+-]\d\d:\d\d)$"


def read_rows(file: Path) -> pd.DataFrame:
    """Return a file's rows, numbered from 1; `reasons` has one bit per entry of REASONS, in
    order.

    `amount` is in cents, `transaction_date` in days and `created_at` in microseconds since
    1970. A NULL number is 0; `has_transaction_id` and `has_created_at` distinguish it.
    """
    texts = _read_texts(file)
    typed = _typed(texts)
    masks = dict(_reasons(texts, typed))
    count = len(texts["status"])
    bits = np.zeros(count, dtype=np.int32)
    for bit, reason in enumerate(REASONS):
        bits |= masks[reason].to_numpy(zero_copy_only=False).astype(np.int32) << bit
    names = ("merchant_id", "currency", "status")
    numbers = ("transaction_id", "customer_id", "amount", "transaction_date", "created_at")
    return pd.DataFrame(
        {
            "file": file.name,
            "row": np.arange(1, count + 1),
            **{name: typed[name].fill_null(0).cast(pa.int64()).to_numpy() for name in numbers},
            **{name: typed[name].to_pandas() for name in names},
            **{
                f"has_{name}": typed[name].is_valid().to_numpy(zero_copy_only=False)
                for name in TYPED
            },
            "reasons": bits,
        }
    )


def _read_texts(path: Path) -> "dict[str, pa.Array[Any]]":
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(COLUMNS, pa.string()),
        include_columns=list(COLUMNS),
        strings_can_be_null=True,
        null_values=[""],
    )
    table = csv.read_csv(path, convert_options=options)
    return {name: table[name].combine_chunks() for name in COLUMNS}


def _typed(texts: "Mapping[str, pa.Array[Any]]") -> "dict[str, pa.Array[Any]]":
    return {
        **texts,
        "transaction_id": _integers(texts["transaction_id"]),
        "customer_id": _integers(texts["customer_id"]),
        "amount": _cents(texts["amount"]),
        "installments": _matching(texts["installments"], r"^\d{1,9}$").cast(pa.int64()),
        "transaction_date": _days(texts["transaction_date"]),
        "created_at": _microseconds(texts["created_at"]),
    }


def _matching(column: "pa.Array[Any]", pattern: str) -> "pa.Array[Any]":
    matching: pa.Array[Any] = pc.if_else(
        pc.match_substring_regex(column, pattern), column, None
    )
    return matching


def _integers(column: "pa.Array[Any]") -> "pa.Array[Any]":
    long = _matching(column, r"^\d{19}$")
    fitting = pc.if_else(pc.less_equal(long, pa.scalar(_LARGEST_BIGINT)), long, None)
    integers: pa.Array[Any] = pc.coalesce(_matching(column, r"^-?\d{1,18}$"), fitting)
    return integers.cast(pa.int64())


def _cents(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return the cents of a decimal(10,2); NULL for values that do not fit exactly."""
    # Below 2^53 a float represents ten digits exactly.
    amounts = _matching(column, r"^-?\d{1,8}(\.\d{1,2})?$").cast(pa.float64())
    return pc.round(pc.multiply(amounts, 100.0)).cast(pa.int64())


def _days(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return days since 1970; the few distinct dates are parsed once each."""
    dates = column.dictionary_encode()
    days = _timestamps(dates.dictionary, rf"^{_DATE}$").cast(pa.date32()).cast(pa.int32())
    return days.take(dates.indices).cast(pa.int64())


def _microseconds(column: "pa.Array[Any]") -> "pa.Array[Any]":
    return _timestamps(column, _TIMESTAMP).cast(pa.int64())


def _timestamps(column: "pa.Array[Any]", pattern: str) -> "pa.Array[Any]":
    texts = _matching(column, pattern).to_pandas()
    timestamps = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    return pa.array(timestamps.astype("datetime64[us, UTC]"))


def _reasons(
    texts: "Mapping[str, pa.Array[Any]]", typed: "Mapping[str, pa.Array[Any]]"
) -> "Iterator[tuple[str, pa.Array[Any]]]":
    for name in TYPED:
        yield f"castable_{name}", pc.and_(texts[name].is_valid(), typed[name].is_null())
    for name in COLUMNS:
        yield f"not_null_{name}", texts[name].is_null()
    for name, values in ACCEPTED.items():
        known = pc.is_in(typed[name], pa.array(values, typed[name].type))
        yield f"accepted_{name}", pc.and_(typed[name].is_valid(), pc.invert(known))
    yield "positive_amount", pc.less_equal(typed["amount"], pa.scalar(0)).fill_null(False)
    first = pa.scalar((FIRST_DATE - _EPOCH).days)
    last = pa.scalar((LAST_DATE - _EPOCH).days)
    days = typed["transaction_date"]
    is_outside = pc.or_(pc.less(days, first), pc.greater(days, last))
    yield "date_in_range", is_outside.fill_null(False)


CLEAN, SUPERSEDED, QUARANTINED = OUTCOMES = ("clean", "superseded", "quarantined")
_NO_ROW = np.iinfo(np.int64).min
"""Older than any row."""


def assign_outcomes(
    files: Sequence[Path], *, each: Callable[[], None] = lambda: None
) -> pd.DataFrame:
    """Return all rows of the files with their `outcome`: `clean`, `superseded` or
    `quarantined`.

    Among the valid rows of a transaction, the one with the greatest (created_at, file name,
    row) is clean. A rejected row is superseded by a greater valid row of its transaction, or by
    any valid row if its own created_at is unreadable.
    """
    frames = []
    for file in sorted(files, key=lambda file: file.name):
        frames.append(read_rows(file))
        each()
    rows = pd.concat(frames, ignore_index=True)
    is_valid = rows["reasons"] == 0
    winners = _winners(rows[is_valid])
    is_overtaken = _is_overtaken(rows, is_valid, winners)
    outcome = np.where(is_valid | is_overtaken, SUPERSEDED, QUARANTINED).astype(object)
    outcome[winners] = CLEAN
    return rows.assign(outcome=pd.Categorical(outcome, OUTCOMES))


def _winners(valid: pd.DataFrame) -> pd.Index:
    # Rows are ordered by (file name, row), and a stable sort preserves this order.
    by_age = valid[["transaction_id", "created_at"]].sort_values("created_at", kind="stable")
    return by_age.drop_duplicates("transaction_id", keep="last").index


def _is_overtaken(rows: pd.DataFrame, is_valid: pd.Series, winners: pd.Index) -> pd.Series:
    created = rows["created_at"]
    by_transaction = created.where(is_valid, _NO_ROW).groupby(rows["transaction_id"])
    newest = by_transaction.transform("max")
    has_valid = rows["has_transaction_id"] & (newest > _NO_ROW)
    position = pd.Series(winners, index=rows.loc[winners, "transaction_id"])
    is_later = rows["transaction_id"].map(position) > rows.index
    is_newer = (newest > created) | ((newest == created) & is_later)
    return has_valid & (~rows["has_created_at"] | is_newer)


@dataclass(frozen=True)
class DaySummary:
    """A row of the daily summary; amounts are text, to preserve all digits."""

    transaction_date: str
    currency: str
    transactions: int
    approved: int
    declined: int
    gross_amount: str
    approved_amount: str
    average_amount: str
    approval_rate: float | None
    distinct_customers: int
    distinct_merchants: int


@dataclass(frozen=True)
class Truth:
    """The expected results for a set of files."""

    rows_by_file: Mapping[str, int]
    totals: Mapping[str, int]
    """Rows in `bronze`, of which `clean`, `superseded` and `quarantined`."""
    quarantined_by_reason: Mapping[str, int]
    """A row that is rejected for two reasons counts for both."""
    clean_by_day: Mapping[str, int]
    customers: int
    daily_summary: Sequence[DaySummary]


def truth_of(files: Sequence[Path], *, each: Callable[[], None] = lambda: None) -> Truth:
    """Compute the expected results for some files.

    :param each: called after each file.
    """
    rows = assign_outcomes(files, each=each)
    clean = _with_approved(rows[rows["outcome"] == CLEAN])
    names = sorted(file.name for file in files)
    return Truth(
        rows_by_file=_counts(rows["file"], names),
        totals={"bronze": len(rows), **_counts(rows["outcome"], OUTCOMES)},
        quarantined_by_reason=_by_reason(rows[rows["outcome"] == QUARANTINED]),
        clean_by_day=_by_day(clean),
        customers=clean["customer_id"].nunique(),
        daily_summary=_daily_summary(clean),
    )


def _counts(column: pd.Series, values: Sequence[str]) -> dict[str, int]:
    counts = column.value_counts()
    return {value: int(counts.get(value, 0)) for value in values}


def _by_reason(refused: pd.DataFrame) -> dict[str, int]:
    bits = refused["reasons"].to_numpy()
    counts = {}
    for bit, reason in enumerate(REASONS):
        count = int((bits >> bit & 1).sum())
        if count:
            counts[reason] = count
    return counts


def _by_day(clean: pd.DataFrame) -> dict[str, int]:
    counts = clean["transaction_date"].value_counts().sort_index()
    return {_date(day): count for day, count in zip(counts.index, counts, strict=True)}


def _daily_summary(clean: pd.DataFrame) -> list[DaySummary]:
    summary = clean.groupby(["transaction_date", "currency"]).agg(
        transactions=("amount", "size"),
        approved=("is_approved", "sum"),
        declined=("is_declined", "sum"),
        gross=("amount", "sum"),
        approved_amount=("approved_amount", "sum"),
        customers=("customer_id", "nunique"),
        merchants=("merchant_id", "nunique"),
    )
    return [_summary(row) for row in summary.itertuples()]


def _with_approved(clean: pd.DataFrame) -> pd.DataFrame:
    is_approved = clean["status"] == "APPROVED"
    return clean.assign(
        is_approved=is_approved,
        is_declined=clean["status"] == "DECLINED",
        approved_amount=clean["amount"].where(is_approved, 0),
    )


def _summary(row: Any) -> DaySummary:
    day, currency = row.Index
    decided = row.approved + row.declined
    return DaySummary(
        transaction_date=_date(day),
        currency=currency,
        transactions=row.transactions,
        approved=row.approved,
        declined=row.declined,
        gross_amount=_money(row.gross),
        approved_amount=_money(row.approved_amount),
        average_amount=_average(row.gross, row.transactions),
        approval_rate=row.approved / decided if decided else None,
        distinct_customers=row.customers,
        distinct_merchants=row.merchants,
    )


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=int(day))).isoformat()


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _average(cents: int, count: int) -> str:
    """Return the average of positive amounts with four decimals, rounded half up."""
    ten_thousandths = (2 * cents * 100 + count) // (2 * count)
    return f"{ten_thousandths // 10_000}.{ten_thousandths % 10_000:04}"
