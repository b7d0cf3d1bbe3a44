"""What becomes of each row once all files are in: which version of a transaction wins, and who
loses to it.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lakehouse.sample_data.bnpl.truth_rows import SampleFile, read_rows

CLEAN, SUPERSEDED, QUARANTINED = OUTCOMES = ("clean", "superseded", "quarantined")


def assign_outcomes(
    files: Sequence[SampleFile], *, each: Callable[[], None] = lambda: None
) -> pd.DataFrame:
    """Return all rows of the files, each with its `outcome`: `clean`, `superseded` or
    `quarantined`.

    Of a transaction's valid rows that with the greatest (created_at, file name, row) is clean.
    A refused row is superseded by a valid row of its transaction that is not older, or whose
    age it does not tell itself.
    """
    frames = []
    for file in sorted(files, key=lambda file: file.name):
        frames.append(read_rows(file))
        each()
    rows = pd.concat(frames, ignore_index=True)
    valid = rows["reasons"].to_numpy() == 0
    winners = _winners(rows, valid)
    outcome = np.where(valid | _overtaken(rows, winners), SUPERSEDED, QUARANTINED).astype(
        object
    )
    outcome[winners] = CLEAN
    return rows.assign(outcome=pd.Categorical(outcome, OUTCOMES))


def _winners(rows: pd.DataFrame, valid: np.ndarray) -> np.ndarray:
    """Return the positions of the rows that win, in the order of their transactions."""
    positions = np.flatnonzero(valid)
    ids = rows["transaction_id"].to_numpy()[positions]
    # Rows stand in the order of (file name, row), and the sort keeps it among equals.
    order = np.lexsort((rows["created_at"].to_numpy()[positions], ids))
    last = np.append(ids[order][1:] != ids[order][:-1], True)[: len(ids)]
    winners: np.ndarray = positions[order[last]]
    return winners


def _overtaken(rows: pd.DataFrame, winners: np.ndarray) -> np.ndarray:
    """Return which rows have a winner of their transaction that is not older."""
    ids, created = rows["transaction_id"].to_numpy(), rows["created_at"].to_numpy()
    if not len(winners):
        return np.zeros(len(rows), dtype=bool)
    at = np.minimum(np.searchsorted(ids[winners], ids), len(winners) - 1)
    has_winner = rows["has_transaction_id"].to_numpy() & (ids[winners][at] == ids)
    overtaken: np.ndarray = has_winner & (
        ~rows["has_created_at"].to_numpy() | (created[winners][at] >= created)
    )
    return overtaken
