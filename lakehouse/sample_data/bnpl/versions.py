"""Generate further versions of transactions, their creation times and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.random import Generator

from lakehouse.sample_data.bnpl.arguments import Arguments
from lakehouse.sample_data.bnpl.defects import CODES, CORRECTED, NONE, OF_A_VERSION
from lakehouse.sample_data.bnpl.transactions import DAY_SECONDS, STATUSES

LONGEST_DELAY_DAYS = 6
PENDING = STATUSES.index("PENDING")
SETTLED_WEIGHTS = (0.0, 0.80, 0.12, 0.08)


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


def later_files(file: np.ndarray, arguments: Arguments, rng: Generator) -> np.ndarray:
    """Return a later file for each file, usually close; the last file is unchanged."""
    room = np.minimum(LONGEST_DELAY_DAYS, arguments.days - 1 - file)
    later: np.ndarray = file + _steps(rng.random(len(file)) ** 2, room)
    return later


def _steps(share: np.ndarray, room: np.ndarray) -> np.ndarray:
    steps: np.ndarray = np.minimum(1 + np.floor(share * room).astype(np.int32), room)
    return steps


def second_versions(
    kind: SecondVersion, first: pd.DataFrame, arguments: Arguments, rng: Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the adjusted first versions, and the second ones."""
    early = first["file"].to_numpy()
    later = later_files(early, arguments, rng)
    first = first.assign(
        status=np.int8(PENDING), defect=_defects(kind.first_defects, len(first))
    )
    second = newer(first, early if kind.arrives_first else later, arguments, rng)
    second = second.assign(defect=_defects(kind.defects, len(first)))
    if kind.moved:
        second = _moved(second, arguments, rng)
    if kind.same_time:
        second = second.assign(created=first["created"])
    return (first.assign(file=later) if kind.arrives_first else first), second


def newer(
    older: pd.DataFrame, file: np.ndarray, arguments: Arguments, rng: Generator
) -> pd.DataFrame:
    """Return newer settled versions, created before the end of their file's day."""
    end = (arguments.start_day + file.astype(np.int64) + 1) * DAY_SECONDS - 1
    created = older["created"].to_numpy()
    room = np.maximum(end - created - 1, 0)
    return older.assign(
        file=file,
        created=created + 1 + np.floor(rng.random(len(older)) * room).astype(np.int64),
        status=rng.choice(len(STATUSES), size=len(older), p=SETTLED_WEIGHTS).astype(np.int8),
    )


def _moved(versions: pd.DataFrame, arguments: Arguments, rng: Generator) -> pd.DataFrame:
    """Return the versions with another transaction date."""
    day = versions["day"].to_numpy()
    ahead = arguments.start_day + versions["file"].to_numpy() - day
    forward = _steps(rng.random(len(day)), ahead)
    back = (day > arguments.start_day) & (rng.random(len(day)) < 0.5)
    return versions.assign(day=(day + np.where(back, -1, forward)).astype(np.int32))


def _defects(names: Sequence[str], count: int) -> np.ndarray:
    codes = [CODES[name] for name in names] or [NONE]
    return np.resize(np.array(codes, dtype=np.int8), count)
