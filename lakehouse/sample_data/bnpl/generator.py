"""Generate one CSV file of transactions per day, and the expected results."""

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from lakehouse.sample_data.bnpl.arguments import TRUTH, Arguments
from lakehouse.sample_data.bnpl.defects import CODES, DEFECTS
from lakehouse.sample_data.bnpl.transactions import DAY_SECONDS, make_rows
from lakehouse.sample_data.bnpl.truth import Truth, truth_of

_PATTERNS = ("bnpl_*.csv", "bnpl_*.csv.gz", TRUTH)


class FolderTaken(ValueError):
    """The folder contains other files than those to be written."""


def check_folder(out: Path, arguments: Arguments) -> None:
    """Reject a folder with files of other arguments, since it can have only one `truth.json`.

    :raises FolderTaken: states the folder and a file in it.
    """
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


METHOD = "payment_method"
OFFSET = "+08:00"
"""The offset of Asia/Kuala_Lumpur, which has no daylight saving time."""
COMPRESSION_LEVEL = 6
_UTC_OFFSET_SECONDS = 8 * 3600


@dataclass(frozen=True)
class Generated:
    """The generated files in the order of their days, and the expected results."""

    files: tuple[Path, ...]
    truth_file: Path
    truth: Truth


def generate(
    out: Path, start: date, days: int, rows_per_day: int, seed: int, *, gzip: bool = False
) -> Generated:
    """Write `bnpl_<date>.csv` for each day, and `truth.json`.

    Equal arguments generate equal bytes. All files appear together when they are complete. The
    modification time of each file is the end of its day.

    :raises BadArguments: an argument is invalid.
    :raises FolderTaken: the folder contains files of other arguments.
    """
    arguments = Arguments(start, days, rows_per_day, seed, gzip)
    check_folder(out, arguments)
    with staging_folder(out) as staging:
        _write_days(arguments, staging)
        truth = truth_of([staging / name for name in arguments.file_names])
        content = {"arguments": arguments.as_json(), **asdict(truth)}
        text = json.dumps(content, indent=1) + "\n"
        (staging / TRUTH).write_text(text, encoding="utf-8")
    return Generated(tuple(out / name for name in arguments.file_names), out / TRUTH, truth)


def _write_days(arguments: Arguments, folder: Path) -> None:
    rows = make_rows(arguments, np.random.default_rng(arguments.seed))
    for day, name in enumerate(arguments.file_names):
        texts = _as_text(rows[rows["file"] == day])
        if day < arguments.first_day_with_method:
            del texts[METHOD]
        path = folder / name
        _write_csv(pa.table(texts), path)
        midnight = (arguments.start_day + day + 1) * DAY_SECONDS - _UTC_OFFSET_SECONDS
        # The first day's file is the oldest, regardless of when it was written.
        os.utime(path, (midnight, midnight))


def _as_text(rows: pd.DataFrame) -> "dict[str, pa.Array[Any]]":
    """Return the rows as text columns, with NULL for empty fields."""
    customer = _text(rows["customer"])
    amount = pc.multiply(pa.array(rows["cents"]).cast(pa.decimal128(19)), Decimal("0.01"))
    created = pa.array(rows["created"]).cast(pa.timestamp("s")).cast(pa.string())
    texts = {
        "transaction_id": _text(rows["transaction"]),
        "customer_id": customer,
        "merchant_id": _joined("M", pc.utf8_lpad(_text(rows["merchant"] + 1), 5, "0")),
        "merchant_category": _text(rows["category"]),
        "amount": amount.cast(pa.string()),
        "currency": _text(rows["currency"]),
        "installments": _text(rows["installments"]),
        METHOD: _text(rows["method"]),
        "status": _text(rows["status"]),
        "transaction_date": pa.array(rows["day"].astype(np.int32))
        .cast(pa.date32())
        .cast(pa.string()),
        "created_at": _joined(pc.replace_substring(created, " ", "T"), OFFSET),
        "customer_email": _joined("customer", customer, "@example.com"),
        "region": _text(rows["region"]),
    }
    for name, defect in DEFECTS.items():
        broken = (rows["defect"] == CODES[name]).to_numpy()
        ids = rows["transaction"].to_numpy()[broken]
        for column, choices in defect.items():
            # Chosen by the id, so that a copied line is identical.
            values = pa.array(choices).take(pa.array(ids % len(choices)))
            texts[column] = pc.replace_with_mask(texts[column], pa.array(broken), values)
    return texts


def _text(values: pd.Series) -> "pa.Array[Any]":
    texts: pa.Array[Any] = pa.array(values).cast(pa.string())
    return texts


def _joined(*parts: Any) -> "pa.Array[Any]":
    texts: pa.Array[Any] = pc.binary_join_element_wise(*parts, "")
    return texts


def _write_csv(table: pa.Table, path: Path) -> None:
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
