"""Convert generated rows to CSV text."""

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from lakehouse.sample_data.bnpl.arguments import Arguments
from lakehouse.sample_data.bnpl.defects import DEFECTS
from lakehouse.sample_data.bnpl.transactions import DAY_SECONDS, INSTALLMENTS, STATUSES
from lakehouse.sample_data.bnpl.world import (
    CATEGORIES,
    CURRENCIES,
    PAYMENT_METHODS,
    REGIONS,
    World,
)

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
