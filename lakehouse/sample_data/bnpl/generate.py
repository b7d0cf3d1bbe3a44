"""Generate one file of transactions per day, and the expected results."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path

import numpy as np

from lakehouse.sample_data.bnpl.arguments import TRUTH, Arguments
from lakehouse.sample_data.bnpl.csv_files import as_text, write_csv
from lakehouse.sample_data.bnpl.delivered_rows import make_rows
from lakehouse.sample_data.bnpl.folder import check_folder, staging_folder
from lakehouse.sample_data.bnpl.transactions import DAY_SECONDS
from lakehouse.sample_data.bnpl.truth import Truth, truth_of
from lakehouse.sample_data.bnpl.world import make_world

Progress = Callable[[int, int], None]
"""Receives the number of completed steps and of all steps."""
_UTC_OFFSET_SECONDS = 8 * 3600


@dataclass(frozen=True)
class Generated:
    """The generated files in the order of their days, and the expected results."""

    files: tuple[Path, ...]
    truth_file: Path
    truth: Truth


def generate(
    out: Path,
    start: date,
    days: int,
    rows_per_day: int,
    seed: int,
    *,
    gzip: bool = False,
    progress: Progress = lambda _done, _total: None,
) -> Generated:
    """Write `bnpl_<date>.csv` for each day, and `truth.json`.

    Equal arguments generate equal bytes. All files appear together when they are complete. The
    modification time of each file is the end of its day.

    :raises BadArguments: an argument is invalid.
    :raises FolderTaken: the folder contains files of other arguments.
    """
    arguments = Arguments(start, days, rows_per_day, seed, gzip)
    check_folder(out, arguments)
    steps = count(1)

    def end_step() -> None:
        progress(next(steps), 2 * days + 2)

    with staging_folder(out) as staging:
        _write_days(arguments, staging, end_step)
        truth = truth_of([staging / name for name in arguments.file_names], each=end_step)
        end_step()
        content = {"arguments": arguments.as_json(), **truth.as_json()}
        text = json.dumps(content, indent=1) + "\n"
        (staging / TRUTH).write_text(text, encoding="utf-8")
    return Generated(tuple(out / name for name in arguments.file_names), out / TRUTH, truth)


def _write_days(arguments: Arguments, folder: Path, end_step: Callable[[], None]) -> None:
    rng = np.random.default_rng(arguments.seed)
    world = make_world(arguments, rng)
    rows = make_rows(arguments, world, rng)
    end_step()
    for day, name in enumerate(arguments.file_names):
        rows_of_day = rows[rows["file"] == day]
        with_method = day >= arguments.first_day_with_method
        path = folder / name
        write_csv(as_text(rows_of_day, world, arguments, with_method=with_method), path)
        midnight = (arguments.start_day + day + 1) * DAY_SECONDS - _UTC_OFFSET_SECONDS
        # The first day's file is the oldest, regardless of when it was written.
        os.utime(path, (midnight, midnight))
        end_step()
