"""Generate one CSV file of transactions per day, and the expected results."""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.random import Generator
from pyarrow import csv

from lakehouse.sample_data.bnpl.arguments import TRUTH, Arguments
from lakehouse.sample_data.bnpl.defects import CODES, CORRECTED, DEFECTS, NONE, OF_A_VERSION
from lakehouse.sample_data.bnpl.transactions import (
    DAY_SECONDS,
    INSTALLMENTS,
    STATUSES,
    make_transactions,
)
from lakehouse.sample_data.bnpl.truth import Truth, truth_of
from lakehouse.sample_data.bnpl.world import (
    CATEGORIES,
    CURRENCIES,
    PAYMENT_METHODS,
    REGIONS,
    World,
    make_world,
)

_PATTERNS = ("bnpl_*.csv", "bnpl_*.csv.gz", TRUTH)


class FolderTaken(ValueError):
    """The folder contains other files than those to be written."""


def check_folder(out: Path, arguments: Arguments) -> None:
    """Reject a folder with files of other arguments, since it can have only one `truth.json`.

    :raises FolderTaken: states the folder and a file in it.
    """
    if out.exists() and not out.is_dir():
        raise FolderTaken(f"{out} is a file; expected a folder, or a name that is free.")
    other = {file.name for pattern in _PATTERNS for file in out.glob(pattern)}
    if _arguments_of(out / TRUTH) == arguments.as_json():
        other -= {*arguments.file_names, TRUTH}
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        raise FolderTaken(
            f"{out} holds {min(other)}{more},"
            " generated with other arguments; expected none, or what the same arguments made."
        )


@contextmanager
def staging_folder(out: Path) -> Iterator[Path]:
    """Provide a hidden folder, whose files are moved to `out` at the end; none after an error."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".generated-", dir=out) as staging:
        yield Path(staging)
        # `truth.json` is first: it identifies the arguments of an interrupted generation.
        for file in sorted(Path(staging).iterdir(), reverse=True):
            file.replace(out / file.name)


def _arguments_of(truth: Path) -> object:
    if not truth.is_file():
        return None
    try:
        content = json.loads(truth.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return content.get("arguments") if isinstance(content, dict) else None


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


METHOD = "payment_method"
OFFSET = "+08:00"
"""The offset of Asia/Kuala_Lumpur, which has no daylight saving time."""
COMPRESSION_LEVEL = 6
_CENTS = pa.array([f".{cents:02}" for cents in range(100)])
_TIMES = pa.array(
    [f"T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}{OFFSET}" for at in range(DAY_SECONDS)]
)


def as_text(
    rows: pd.DataFrame, world: World, arguments: Arguments, *, with_method: bool
) -> pa.Table:
    """Return the rows as text columns, with NULL for empty fields."""
    columns = {str(name): values.to_numpy() for name, values in rows.items()}
    texts = _well_formed(columns, world, arguments)
    for code, defect in enumerate(DEFECTS.values(), start=1):
        broken = columns["defect"] == code
        if not broken.any():
            continue
        ids = columns["transaction"][broken]
        for column, choices in defect.items():
            # Chosen by the id, so that a copied line is identical.
            values = pa.array(choices).take(pa.array(ids % len(choices)))
            texts[column] = pc.replace_with_mask(texts[column], pa.array(broken), values)
    if not with_method:
        del texts[METHOD]
    return pa.table(texts)


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a CSV file, compressed according to its name; the output is deterministic."""
    with _open(path) as file:
        file.write((",".join(table.column_names) + "\n").encode())
        options = csv.WriteOptions(
            include_header=False, batch_size=1 << 16, quoting_style="none"
        )
        csv.write_csv(table, file, options)


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        # No name and no timestamp, so that the output is deterministic.
        with gzip.GzipFile("", "wb", COMPRESSION_LEVEL, file, mtime=0) as packed:
            yield cast("IO[bytes]", packed)


def _well_formed(
    columns: dict[str, np.ndarray], world: World, arguments: Arguments
) -> "dict[str, pa.Array[Any]]":
    customer, merchant = columns["customer"], columns["merchant"]
    customer_id = pa.array(world.customer_ids[customer]).cast(pa.string())
    return {
        "transaction_id": pa.array(columns["transaction"]).cast(pa.string()),
        "customer_id": customer_id,
        "merchant_id": _look_up(world.merchant_ids, merchant),
        "merchant_category": _look_up(CATEGORIES, world.merchant_categories[merchant]),
        "amount": _amounts(columns["cents"]),
        "currency": _look_up(CURRENCIES, columns["currency"]),
        "installments": _look_up(map(str, INSTALLMENTS), columns["installments"]),
        METHOD: _look_up(PAYMENT_METHODS, columns["method"]),
        "status": _look_up(STATUSES, columns["status"]),
        "transaction_date": _dates(columns["day"], arguments),
        "created_at": _timestamps(columns["created"], arguments),
        "customer_email": _joined("customer", customer_id, "@example.com", ""),
        "region": _look_up(REGIONS, world.customer_regions[customer]),
    }


def _look_up(words: Iterable[str], codes: np.ndarray) -> "pa.Array[Any]":
    return pa.array(list(words)).take(pa.array(codes, mask=codes < 0))


def _joined(*parts: Any) -> "pa.Array[Any]":
    texts: pa.Array[Any] = pc.binary_join_element_wise(*parts)
    return texts


def _amounts(cents: np.ndarray) -> "pa.Array[Any]":
    units = pa.array(cents // 100).cast(pa.string())
    return _joined(units, _CENTS.take(pa.array(cents % 100)), "")


def _dates(day: np.ndarray, arguments: Arguments) -> "pa.Array[Any]":
    # One day more than generated: a version made a second after 23:59:59.
    days = np.arange(arguments.start_day, arguments.start_day + arguments.days + 1).astype(
        "datetime64[D]"
    )
    return _look_up(np.datetime_as_string(days).tolist(), day - arguments.start_day)


def _timestamps(created: np.ndarray, arguments: Arguments) -> "pa.Array[Any]":
    times = _TIMES.take(pa.array(created % DAY_SECONDS))
    return _joined(_dates(created // DAY_SECONDS, arguments), times, "")


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
        content = {"arguments": arguments.as_json(), **asdict(truth)}
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
