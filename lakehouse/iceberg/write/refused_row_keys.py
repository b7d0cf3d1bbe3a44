"""What tells a refused row in a quarantine from all others there: its source, the partition or
the key that it was computed for, and its values where that is not enough.

Two rows of one key are one row to the quarantine, so that the other one would be nowhere.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier, json_of
from lakehouse.tables.table import SOURCE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY, _REASONS = "_row_key", "_reasons"
_PARTS_OF_SOURCE = ", ".join(SOURCE_COLUMNS)
OF_SOURCE = f"sha2(concat_ws('|', {_PARTS_OF_SOURCE}), 256)"
"""SQL of the key of a row that is refused alone of its source."""
_HAS_SOURCE = " AND ".join(f"{name} IS NOT NULL" for name in SOURCE_COLUMNS)
_VALUES, _DIFFER, _IS_AGAIN = "__values", "__differ", "__is_again"


def of_source_in(part: str) -> str:
    """Return the SQL of the key of a row that is refused alone of its source in one partition,
    or for one key; that of its source where it has no partition.

    The runs of two partitions know nothing of each other: each may refuse a row that a function
    makes of the same delivered one. So do runs of changed keys.

    :param part: SQL of its value in the column that the table is overwritten by, as text, or of
        its key.
    """
    return f"sha2(concat_ws('|', {_PARTS_OF_SOURCE}, {part}), 256)"


def row_key_sql(present: Collection[str], texts: Iterable[str], part: str | None = None) -> str:
    """Return the SQL of what tells a refused row: where it came from, or else its values as text.

    A row of a frame that keeps sources may have none, or a part of one, as after an outer join.

    :param present: the columns of the frame that it is of.
    :param texts: SQL of its values.
    :param part: as for `of_source_in`; None where a run sees all rows of a source or none.
    """
    values = f"array({', '.join(texts)})"
    if not all(name in present for name in SOURCE_COLUMNS):
        return _hash(json_of(values))
    parts = ", ".join(f"CAST({name} AS STRING)" for name in SOURCE_COLUMNS)
    of_values = _hash(json_of(f"concat({values}, array_compact(array({parts})))"))
    of_source = OF_SOURCE if part is None else of_source_in(part)
    return f"if({_HAS_SOURCE}, {of_source}, {of_values})"


def each_once(rows: "DataFrame") -> "DataFrame":
    """Return rows for a quarantine, each of those that differ once, under a key of its own.

    A function may make several rows of a delivered one. Where more than one of them is refused,
    the key of each has its values in it too: by them it stays the same when another of them is
    accepted later, or cleared. A row that is refused alone keeps the key of its source, so that
    it is known again where its values are computed otherwise.
    """
    compared = [identifier(name) for name in rows.columns if name not in (_KEY, _REASONS)]
    # Fields without a value are not written, so that a new column changes no key.
    values = _hash(json_of(f"struct({', '.join(compared)})"))
    of_key = f"OVER (PARTITION BY {_KEY})"
    in_order = f"OVER (PARTITION BY {_KEY} ORDER BY {_VALUES})"
    told = rows.selectExpr("*", f"{values} AS {_VALUES}").selectExpr(
        "*",
        f"min({_VALUES}) {of_key} <> max({_VALUES}) {of_key} AS {_DIFFER}",
        f"lag({_VALUES}) {in_order} <=> {_VALUES} AS {_IS_AGAIN}",
    )
    own_key = f"if({_DIFFER}, {_hash(f'concat({_KEY}, {_VALUES})')}, {_KEY}) AS {_KEY}"
    names = [own_key if name == _KEY else identifier(name) for name in rows.columns]
    return told.where(f"NOT {_IS_AGAIN}").selectExpr(*names)


def _hash(text: str) -> str:
    return f"sha2({text}, 256)"
