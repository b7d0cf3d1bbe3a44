"""Keys of rows that differ between two states of a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier, json_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNT, _HASH = "__counted", "__hash"
_NESTED = ("struct", "array", "map")


def keys_of_changed_rows(
    now: "DataFrame", before: "DataFrame", names: Mapping[str, str | None], keys: Sequence[str]
) -> "DataFrame":
    """Return the distinct keys of added, removed and changed rows, by a 64-bit hash of all
    columns.

    :param names: for each column of `now`, its name in `before`; None if it was missing there.
    :param keys: columns of `now`.
    """
    types_now, types_before = dict(now.dtypes), dict(before.dtypes)
    is_nested = {
        name: (
            types_now[name].startswith(_NESTED)
            or bool(then and types_before[then].startswith(_NESTED))
        )
        for name, then in names.items()
    }
    sides = [
        _with_counts(now, {name: name for name in names}, types_now, is_nested, keys, 1),
        _with_counts(before, names, types_now, is_nested, keys, -1),
    ]
    hash_counts = (
        sides[0].unionAll(sides[1]).groupBy(*map(identifier, keys), _HASH).agg({_COUNT: "sum"})
    )
    return (
        hash_counts.where(f"`sum({_COUNT})` <> 0").selectExpr(*map(identifier, keys)).distinct()
    )


def _with_counts(
    rows: "DataFrame",
    names: Mapping[str, str | None],
    types: Mapping[str, str],
    is_nested: Mapping[str, bool],
    keys: Sequence[str],
    count: int,
) -> "DataFrame":
    values = {
        name: _value(then, types[name], is_nested=is_nested[name])
        for name, then in names.items()
    }
    # xxhash64 skips NULL: without the IS NULL terms, a value that moves to the next column
    # would not be detected.
    terms = ", ".join(f"{value}, {value} IS NULL" for value in values.values())
    selected = [f"{values[key]} AS {identifier(key)}" for key in keys]
    return rows.selectExpr(*selected, f"xxhash64({terms}) AS {_HASH}", f"{count} AS {_COUNT}")


def _value(name: str | None, column_type: str, *, is_nested: bool) -> str:
    if name is None:
        return "'{}'" if is_nested else f"CAST(NULL AS {column_type})"
    return (
        json_of(f"struct({identifier(name)} AS v)")
        if is_nested
        else f"CAST({identifier(name)} AS {column_type})"
    )
