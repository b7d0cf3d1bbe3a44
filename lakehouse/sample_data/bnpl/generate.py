"""One file of transactions for each day, and the truth about all of them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from lakehouse.sample_data.bnpl.arguments import TRUTH, Arguments
from lakehouse.sample_data.bnpl.csv_files import as_text, write_csv
from lakehouse.sample_data.bnpl.delivered_rows import make_rows
from lakehouse.sample_data.bnpl.folder import check_folder, hidden_until_whole, set_modified
from lakehouse.sample_data.bnpl.transactions import DAY_SECONDS
from lakehouse.sample_data.bnpl.truth import Truth, truth_of
from lakehouse.sample_data.bnpl.truth_rows import SampleFile
from lakehouse.sample_data.bnpl.world import make_world

Progress = Callable[[int, int], None]
"""Is told how many steps are done, and of how many."""
_UTC_OFFSET_SECONDS = 8 * 3600


@dataclass(frozen=True)
class Generated:
    """What was written: the files in the order of their days, and the truth about them."""

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

    The same arguments make the same bytes. Files show up all together once they are whole; each
    was last modified, it says, at the end of its day.

    :raises BadArguments: an argument cannot be.
    :raises FolderTaken: the folder holds files of other arguments.
    """
    arguments = Arguments(start, days, rows_per_day, seed, gzip)
    check_folder(out, arguments)
    # The truth goes first: by it a run that was stopped between two renames is known as one of
    # the same arguments.
    with hidden_until_whole(out, [TRUTH, *arguments.file_names]) as hidden:
        steps = _Steps(progress, total=2 * days + 2)
        _write_days(arguments, hidden, steps)
        files = [SampleFile(name, hidden[name]) for name in arguments.file_names]
        truth = truth_of(files, each=steps.next)
        steps.next()
        content = {"arguments": arguments.as_json(), **truth.as_json()}
        hidden[TRUTH].write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return Generated(tuple(out / name for name in arguments.file_names), out / TRUTH, truth)


@dataclass
class _Steps:
    progress: Progress
    total: int
    done: int = 0

    def next(self) -> None:
        self.done += 1
        self.progress(self.done, self.total)


def _write_days(arguments: Arguments, paths: Mapping[str, Path], steps: _Steps) -> None:
    rng = np.random.default_rng(arguments.seed)
    world = make_world(arguments, rng)
    rows = make_rows(arguments, world, rng)
    steps.next()
    begins = np.searchsorted(rows["file"].to_numpy(), np.arange(arguments.days + 1))
    for day, name in enumerate(arguments.file_names):
        rows_of_day = rows.iloc[begins[day] : begins[day + 1]]
        with_method = day >= arguments.first_day_with_method
        write_csv(as_text(rows_of_day, world, arguments, with_method=with_method), paths[name])
        midnight = (arguments.start_day + day + 1) * DAY_SECONDS - _UTC_OFFSET_SECONDS
        set_modified(paths[name], midnight)
        steps.next()
