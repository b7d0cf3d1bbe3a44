"""Which keys have a row that two states of a table do not share."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier, json_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTED, _HASH = "__counted", "__hash"
_NESTED = ("struct", "array", "map")


def keys_of_changed_rows(
    now: "DataFrame", before: "DataFrame", names: Mapping[str, str | None], keys: Sequence[str]
) -> "DataFrame":
    """Return each key once of which a row was added, removed or changed.

    Rows are told apart by their keys and a hash of 64 bits of all columns. A nested column is
    compared as JSON, so that a map in another order is taken for a change.

    :param names: by each column of `now`, its name in `before`; None where it was not there
        yet.
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
        _counted(now, {name: name for name in names}, types_now, is_nested, keys, 1),
        _counted(before, names, types_now, is_nested, keys, -1),
    ]
    counted = (
        sides[0]
        .unionAll(sides[1])
        .groupBy(*map(identifier, keys), _HASH)
        .agg({_COUNTED: "sum"})
    )
    return (
        counted.where(f"`sum({_COUNTED})` <> 0").selectExpr(*map(identifier, keys)).distinct()
    )


def _counted(
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
    # The hash passes NULL over, and would take a value that moved to the next column for the
    # same row.
    terms = ", ".join(f"{value}, {value} IS NULL" for value in values.values())
    selected = [f"{values[key]} AS {identifier(key)}" for key in keys]
    return rows.selectExpr(*selected, f"xxhash64({terms}) AS {_HASH}", f"{count} AS {_COUNTED}")


def _value(name: str | None, column_type: str, *, is_nested: bool) -> str:
    if name is None:
        return "'{}'" if is_nested else f"CAST(NULL AS {column_type})"
    return (
        json_of(f"struct({identifier(name)} AS v)")
        if is_nested
        else f"CAST({identifier(name)} AS {column_type})"
    )
