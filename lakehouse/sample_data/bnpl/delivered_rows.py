"""Generate the rows of all files: transactions with known numbers of defects.

Rates are shares of all rows, rounded down to entire rows.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.random import Generator

from lakehouse.sample_data.bnpl.arguments import Arguments
from lakehouse.sample_data.bnpl.defects import CODES, DEFECTS
from lakehouse.sample_data.bnpl.transactions import make_transactions
from lakehouse.sample_data.bnpl.versions import (
    SECOND_VERSIONS,
    THIRD_RATE,
    later_files,
    newer,
    second_versions,
)
from lakehouse.sample_data.bnpl.world import World

DEFECT_RATE = 0.0006
"""The rate of each defect, among transactions with one version."""
LATE_RATE = 0.02
"""The rate of transactions that arrive in the file of a later day."""
SAME_FILE_COPY_RATE = 0.005
"""The rate of lines repeated in their file."""
LATER_FILE_COPY_RATE = 0.005
"""The rate of lines repeated in a later file."""


def planted(arguments: Arguments, rate: float) -> int:
    """Return the number of rows of a kind that needs one file."""
    return int(rate * arguments.total_rows)


def planted_across_files(arguments: Arguments, rate: float) -> int:
    """Return the number of rows of a kind that needs two files."""
    return planted(arguments, rate) if arguments.days > 1 else 0


def make_rows(arguments: Arguments, world: World, rng: Generator) -> pd.DataFrame:
    """Generate the requested number of rows, in file order."""
    seconds = {
        name: planted_across_files(arguments, kind.rate)
        for name, kind in SECOND_VERSIONS.items()
    }
    thirds = planted_across_files(arguments, THIRD_RATE)
    copies = planted(arguments, SAME_FILE_COPY_RATE)
    later_copies = planted_across_files(arguments, LATER_FILE_COPY_RATE)
    first = arguments.total_rows - sum(seconds.values()) - thirds - copies - later_copies
    transactions = make_transactions(arguments, first, world, rng)
    versions = _versions(arguments, transactions, seconds, thirds, rng)
    rows = pd.concat([transactions, *versions], ignore_index=True)
    copied = _some(rows, copies, rng)
    copied_later = _later_copies(arguments, rows, later_copies, rng)
    return _in_files(pd.concat([rows, copied, copied_later], ignore_index=True), rng)


def _versions(
    arguments: Arguments,
    transactions: pd.DataFrame,
    seconds: Mapping[str, int],
    thirds: int,
    rng: Generator,
) -> list[pd.DataFrame]:
    """Return further versions, and add defects; each transaction is used at most once."""
    order = rng.permutation(len(transactions))
    file = transactions["file"].to_numpy()
    counts = {**seconds, "late": planted_across_files(arguments, LATE_RATE)}
    picked = _deal(order[file[order] < arguments.days - 1], counts)
    rest = order[~np.isin(order, np.concatenate(list(picked.values())))]

    versions = {}
    for name in seconds:
        first, versions[name] = second_versions(
            SECOND_VERSIONS[name], transactions.iloc[picked[name]], arguments, rng
        )
        columns = ["file", "status", "defect"]
        transactions.loc[picked[name], columns] = first[columns]
    updated = versions["updated"].iloc[:thirds]
    files_of_third = later_files(updated["file"].to_numpy(), arguments, rng)
    third_versions = newer(updated, files_of_third, arguments, rng)
    late = picked["late"]
    transactions.loc[late, "file"] = later_files(file[late], arguments, rng)
    counts = dict.fromkeys(DEFECTS, planted(arguments, DEFECT_RATE))
    for defect, with_defect in _deal(rest, counts).items():
        transactions.loc[with_defect, "defect"] = CODES[defect]
    return [*versions.values(), third_versions]


def _deal(order: np.ndarray, counts: Mapping[str, int]) -> dict[str, np.ndarray]:
    ends = np.cumsum(list(counts.values()))
    return dict(zip(counts, np.split(order, ends)[:-1], strict=True))


def _some(rows: pd.DataFrame, count: int, rng: Generator) -> pd.DataFrame:
    return rows.iloc[np.sort(rng.choice(len(rows), size=count, replace=False))]


def _later_copies(
    arguments: Arguments, rows: pd.DataFrame, count: int, rng: Generator
) -> pd.DataFrame:
    copies = _some(rows[rows["file"] < arguments.days - 1], count, rng)
    return copies.assign(file=later_files(copies["file"].to_numpy(), arguments, rng))


def _in_files(rows: pd.DataFrame, rng: Generator) -> pd.DataFrame:
    """Return the rows by file, shuffled within each, so that versions are not in order."""
    mixed = rng.permutation(len(rows))
    by_file = np.argsort(rows["file"].to_numpy()[mixed], kind="stable")
    return rows.iloc[mixed[by_file]]
