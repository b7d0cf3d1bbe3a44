"""Key of a row in a quarantine: its source, the partition or key it was computed for, and its
values if needed.

Rows with the same key are one row in the quarantine, so a collision would lose a row.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier, json_of
from lakehouse.tables.table import SOURCE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY, _REASONS = "_row_key", "_reasons"
_HAS_SOURCE = " AND ".join(f"{name} IS NOT NULL" for name in SOURCE_COLUMNS)
_VALUES, _DIFFER, _IS_AGAIN = "__values", "__differ", "__is_again"


def row_key_sql(present: Collection[str], texts: Iterable[str], part: str | None = None) -> str:
    """Return SQL of the quarantine key: from the source, or else from the values as text.

    A row can lack a source, or a part of it, for example after an outer join.

    :param present: the columns of the DataFrame.
    :param texts: SQL of its values.
    :param part: SQL of the partition value or key as text, if independent runs can each reject
        rows made of the same delivered row.
    """
    values = f"array({', '.join(texts)})"
    if not all(name in present for name in SOURCE_COLUMNS):
        return _hash(json_of(values))
    parts = ", ".join(f"CAST({name} AS STRING)" for name in SOURCE_COLUMNS)
    of_values = _hash(json_of(f"concat({values}, array_compact(array({parts})))"))
    terms = ", ".join([*SOURCE_COLUMNS, *([part] if part else [])])
    of_source = _hash(f"concat_ws('|', {terms})")
    return f"if({_HAS_SOURCE}, {of_source}, {of_values})"


def each_once(rows: "DataFrame") -> "DataFrame":
    """Return distinct rows for a quarantine, with unique keys.

    Several rejected rows of one delivered row have keys with their values, which stay the same
    when one is accepted or cleared. A single one is known by its source, whatever its values.
    """
    compared = [identifier(name) for name in rows.columns if name not in (_KEY, _REASONS)]
    # NULL fields are omitted, so that a new column changes no key.
    values = _hash(json_of(f"struct({', '.join(compared)})"))
    of_key = f"OVER (PARTITION BY {_KEY})"
    in_order = f"OVER (PARTITION BY {_KEY} ORDER BY {_VALUES})"
    compared_rows = rows.selectExpr("*", f"{values} AS {_VALUES}").selectExpr(
        "*",
        f"min({_VALUES}) {of_key} <> max({_VALUES}) {of_key} AS {_DIFFER}",
        f"lag({_VALUES}) {in_order} <=> {_VALUES} AS {_IS_AGAIN}",
    )
    own_key = f"if({_DIFFER}, {_hash(f'concat({_KEY}, {_VALUES})')}, {_KEY}) AS {_KEY}"
    names = [own_key if name == _KEY else identifier(name) for name in rows.columns]
    return compared_rows.where(f"NOT {_IS_AGAIN}").selectExpr(*names)


def _hash(text: str) -> str:
    return f"sha2({text}, 256)"
