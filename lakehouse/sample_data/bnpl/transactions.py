"""Generate transactions and their further versions as a DataFrame.

Columns: `transaction` (the id), `customer`, `merchant`, `cents`, `day` (the transaction date, in
days since 1970), `created` (in seconds since 1970, local time), `file` (the index of the day in
whose file the row arrives), `defect` (a code) and categories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.random import Generator

from lakehouse.sample_data.bnpl.arguments import Arguments
from lakehouse.sample_data.bnpl.defects import CODES, CORRECTED, DEFECTS, NONE, OF_A_VERSION

CURRENCIES = ("MYR", "SGD", "IDR", "THB", "PHP")
REGIONS = ("Kuala Lumpur", "Selangor", "Penang", "Johor", "Singapore", "Jakarta", "Bangkok")
CATEGORIES = ("electronics", "fashion", "groceries", "health", "home", "toys", "travel")
PAYMENT_METHODS = ("card", "wallet", "bank_transfer")
INSTALLMENTS = ("1", "3", "6", "12")
STATUSES = ("PENDING", "APPROVED", "DECLINED", "REFUNDED")
DAY_SECONDS = 86_400
MERCHANTS = 2_000
ROWS_PER_CUSTOMER = 8
FEWEST_CUSTOMERS = 20
FIRST_CUSTOMER_ID = 1_000_001
LARGEST_CENTS = 2_000_000_000
LONGEST_DELAY_DAYS = 6
_FIRST_ID = 2**53
"""Floats cannot distinguish larger ids."""
_IDS_PER_SEED = 10**16
_IDS_PER_DAY = 10**10
_SEEDS = 512


@dataclass(frozen=True)
class SecondVersion:
    """How a second version differs from the first. By default it is newer and arrives later."""

    rate: float
    """The share of all rows."""
    arrives_first: bool = False
    same_time: bool = False
    moved: bool = False
    """Whether the transaction date changes."""
    first_defects: Sequence[str] = ()
    defects: Sequence[str] = ()


SECOND_VERSIONS: Mapping[str, SecondVersion] = {
    "updated": SecondVersion(0.06),
    "moved": SecondVersion(0.01, moved=True),
    "newer first": SecondVersion(0.01, arrives_first=True),
    "same moment": SecondVersion(0.002, same_time=True),
    "invalid newer": SecondVersion(0.005, defects=OF_A_VERSION),
    "invalid older": SecondVersion(0.002, arrives_first=True, first_defects=OF_A_VERSION),
    "corrected": SecondVersion(0.005, first_defects=CORRECTED),
}
THIRD_RATE = 0.004
"""The share of all rows that are third versions of updated transactions."""
DEFECT_RATE = 0.0006
"""The rate of each defect, among transactions with one version."""
LATE_RATE = 0.02
"""The rate of transactions that arrive in the file of a later day."""
COPY_RATE = 0.005
"""The rate of lines repeated in their file, and of lines repeated in a later file."""


def make_rows(arguments: Arguments, rng: Generator) -> pd.DataFrame:
    """Generate the requested number of rows, shuffled within each file."""
    total = arguments.total_rows
    in_two_files = total if arguments.days > 1 else 0
    seconds = {name: int(kind.rate * in_two_files) for name, kind in SECOND_VERSIONS.items()}
    thirds = int(THIRD_RATE * in_two_files)
    copies, later_copies = int(COPY_RATE * total), int(COPY_RATE * in_two_files)
    first = total - sum(seconds.values()) - thirds - copies - later_copies
    rows = _first_versions(arguments, first, rng)

    # Each transaction is used at most once. Those of the last file have no later version.
    order = rng.permutation(rows.index[rows["file"] < arguments.days - 1])
    picked = _deal(order, {**seconds, "late": int(LATE_RATE * in_two_files)})
    versions = {
        name: _second_versions(kind, rows, picked[name], arguments, rng)
        for name, kind in SECOND_VERSIONS.items()
    }
    updated = versions["updated"].iloc[:thirds]
    third_versions = _newer(updated, _later(updated["file"], arguments, rng), arguments, rng)
    late = picked["late"]
    rows.loc[late, "file"] = _later(rows.loc[late, "file"], arguments, rng)
    unused = rng.permutation(
        rows.index.difference(pd.Index(np.concatenate(list(picked.values()))))
    )
    defects = _deal(unused, dict.fromkeys(DEFECTS, int(DEFECT_RATE * total)))
    for name, positions in defects.items():
        rows.loc[positions, "defect"] = CODES[name]

    rows = pd.concat([rows, *versions.values(), third_versions], ignore_index=True)
    copied = rows.sample(copies, random_state=rng)
    repeated = rows[rows["file"] < arguments.days - 1].sample(later_copies, random_state=rng)
    repeated = repeated.assign(file=_later(repeated["file"], arguments, rng))
    rows = pd.concat([rows, copied, repeated], ignore_index=True)
    return rows.sample(frac=1, random_state=rng)


def _first_versions(arguments: Arguments, count: int, rng: Generator) -> pd.DataFrame:
    """Generate the first versions of transactions, in the order of their days."""
    # Each day has at least one if possible.
    file = np.arange(count) * arguments.days // max(count, 1)
    number = np.arange(count) - np.searchsorted(file, file)
    day = arguments.start_day + file
    first_id = _FIRST_ID + arguments.seed % _SEEDS * _IDS_PER_SEED
    customers = max(FEWEST_CUSTOMERS, arguments.total_rows // ROWS_PER_CUSTOMER)
    # Some customers and merchants have many more transactions than others.
    customer = (customers * rng.random(count) ** 2).astype(np.int32)
    merchant = (MERCHANTS * rng.random(count) ** 3).astype(np.int32)
    cents = 12_000 * rng.lognormal(0.0, 1.5, size=count)
    methods = rng.integers(len(PAYMENT_METHODS), size=count)
    # Files before this day do not have the column.
    methods[file < arguments.first_day_with_method] = -1
    return pd.DataFrame(
        {
            "transaction": first_id + day * _IDS_PER_DAY + number,
            "customer": FIRST_CUSTOMER_ID + customer,
            "merchant": merchant,
            "cents": cents.astype(np.int64).clip(1, LARGEST_CENTS),
            "day": day,
            "created": day * DAY_SECONDS + rng.integers(DAY_SECONDS, size=count),
            "file": file,
            "defect": np.int8(NONE),
            "category": _category(merchant % len(CATEGORIES), CATEGORIES),
            "currency": _any_of(CURRENCIES, count, rng),
            "installments": _any_of(INSTALLMENTS, count, rng),
            "method": _category(methods, PAYMENT_METHODS),
            "status": _any_of(STATUSES, count, rng, (0.15, 0.70, 0.12, 0.03)),
            "region": _category(customer % len(REGIONS), REGIONS),
        }
    )


def _category(codes: np.ndarray, words: Sequence[str]) -> "pd.Categorical[str]":
    return pd.Categorical.from_codes(codes, pd.Index(words))


def _any_of(
    words: Sequence[str], count: int, rng: Generator, weights: Sequence[float] | None = None
) -> "pd.Categorical[str]":
    return _category(rng.choice(len(words), size=count, p=weights), words)


def _deal(positions: np.ndarray, counts: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return separate groups of positions."""
    ends = np.cumsum(list(counts.values()))
    return dict(zip(counts, np.split(positions, ends)[:-1], strict=True))


def _second_versions(
    kind: SecondVersion,
    rows: pd.DataFrame,
    positions: np.ndarray,
    arguments: Arguments,
    rng: Generator,
) -> pd.DataFrame:
    """Return second versions of the rows at the positions, and adjust these rows."""
    first = rows.loc[positions]
    later = _later(first["file"], arguments, rng)
    second = _newer(first, first["file"] if kind.arrives_first else later, arguments, rng)
    second["defect"] = _cycle(kind.defects, len(first))
    if kind.moved:
        is_back = (second["day"] > arguments.start_day) & (rng.random(len(second)) < 0.5)
        arrival = arguments.start_day + second["file"]
        second["day"] = np.where(is_back, second["day"] - 1, arrival)
    if kind.same_time:
        second["created"] = first["created"]
    rows.loc[positions, "status"] = "PENDING"
    rows.loc[positions, "defect"] = _cycle(kind.first_defects, len(first))
    if kind.arrives_first:
        rows.loc[positions, "file"] = later
    return second


def _later(file: pd.Series, arguments: Arguments, rng: Generator) -> pd.Series:
    """Return a later file for each file, usually close; the last file is unchanged."""
    room = np.minimum(LONGEST_DELAY_DAYS, arguments.days - 1 - file)
    steps = 1 + (rng.random(len(file)) ** 2 * room).astype(np.int64)
    return file + np.minimum(steps, room)


def _newer(
    older: pd.DataFrame, file: pd.Series, arguments: Arguments, rng: Generator
) -> pd.DataFrame:
    """Return newer settled versions, created before the end of their file's day."""
    end = (arguments.start_day + file + 1) * DAY_SECONDS - 1
    room = np.maximum(end - older["created"] - 1, 0)
    return older.assign(
        file=file,
        created=older["created"] + 1 + (rng.random(len(older)) * room).astype(np.int64),
        status=_any_of(STATUSES, len(older), rng, (0.0, 0.80, 0.12, 0.08)),
    )


def _cycle(names: Sequence[str], count: int) -> np.ndarray:
    codes = [CODES[name] for name in names] or [NONE]
    return np.resize(np.array(codes, dtype=np.int8), count)
