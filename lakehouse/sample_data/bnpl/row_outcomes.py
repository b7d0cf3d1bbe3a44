"""The outcome of each row after all files are delivered: which version of a transaction wins."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lakehouse.sample_data.bnpl.truth_rows import read_rows

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
