"""Removes people from Parquet files with a plain script: reads, filters and rewrites each file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.tables.person import Person

ID, ADDRESS = "customer_id", "customer_email"
CODEC, LEVEL = "zstd", 1
"""As in the tables' files (`tables.table_properties`)."""


@dataclass(frozen=True)
class RemovedRows:
    """Number of removed rows, and the affected files."""

    rows: int = 0
    files: tuple[Path, ...] = ()


def rewrite_parquet(
    files: Iterable[Path], people: Sequence[Person], target: Path
) -> RemovedRows:
    """Rewrite files without the rows of people: rows with their id, or their address without an id.

    All output goes to the same target file: the inputs are used again.
    """
    ids = {text for person in people for text in person.ids}
    addresses = {text for person in people for text in person.personal.get(ADDRESS, ())}
    rows, changed = 0, []
    for file in files:
        table = pq.read_table(file, partitioning=None)
        kept = table.filter(pc.invert(_matches(table, ids, addresses)))
        pq.write_table(kept, target, compression=CODEC, compression_level=LEVEL)
        if kept.num_rows < table.num_rows:
            rows += table.num_rows - kept.num_rows
            changed.append(file)
    return RemovedRows(rows, tuple(changed))


def _matches(table: pa.Table, ids: set[str], addresses: set[str]) -> Any:
    column = table.column(ID)
    matches = pc.is_in(column, value_set=pa.array(sorted(ids)).cast(column.type))
    if ADDRESS not in table.column_names:
        return matches
    by_address = pc.is_in(table.column(ADDRESS), value_set=pa.array(sorted(addresses)))
    return pc.or_(matches, pc.and_(_is_blank(column), by_address))


def _is_blank(column: Any) -> Any:
    if pa.types.is_integer(column.type):
        return column.is_null()
    return pc.equal(pc.fill_null(column, ""), pa.scalar(""))
