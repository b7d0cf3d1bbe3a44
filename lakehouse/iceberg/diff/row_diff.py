"""Added, removed and changed rows between two snapshots, and the check of their key."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.diff.diff_columns import SharedColumn
from lakehouse.iceberg.diff.diff_plan import Diff
from lakehouse.iceberg.frames.frames import collect
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.tables.quoting import identifier
from lakehouse.tables.types import comparable_sql, has_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_unique(engine: Engine, planned: Diff) -> None:
    """Check that the key of a diff is unique; reads its columns of both snapshots.

    :raises UsageError: with the number of duplicate keys and the most rows of one.
    """
    for snapshot_id in dict.fromkeys([planned.after, planned.before]):
        if snapshot_id is not None:
            _check_snapshot(engine, planned, snapshot_id)


def _check_snapshot(engine: Engine, planned: Diff, snapshot_id: int) -> None:
    terms = dict(zip(planned.names, planned.terms(snapshot_id), strict=True))
    key = [f"{terms[name]} AS __{at}" for at, name in enumerate(planned.key)]
    rows = read(engine, Pin(planned.table, snapshot_id)).selectExpr(*key)
    repeated = rows.groupBy(*rows.columns).count().where("count > 1")
    counts = repeated.selectExpr("count(1) AS keys", "max(count) AS most_rows").collect()[0]
    if counts["keys"]:
        values = "1 value has" if counts["keys"] == 1 else f"{counts['keys']:,} values have"
        raise UsageError(
            f"The key {', '.join(planned.key)} of {planned.table} is not unique: in snapshot"
            f" {snapshot_id}, {values} several rows, up to {counts['most_rows']:,}.",
            next_step="Add columns to --key, or use a unique key.",
        )


_RANKS = "array('removed', 'before', 'after', 'added')"


@dataclass(frozen=True)
class Counts:
    added: int = 0
    removed: int = 0
    changed: int = 0


def apply_diff(engine: Engine, planned: Diff) -> "DataFrame":
    """Return the rows that differ between two snapshots, each with its `change`; unordered.

    The change is `added` or `removed`; or `before` and `after` for the two rows of a changed
    key. Columns have their current names, and are NULL if a snapshot lacks them.
    """
    rows = _before(engine, planned).unionAll(_after(engine, planned))
    net = _net(planned.columns, rows)
    change = "if(__net < 0, 'removed', 'added')"
    if planned.key:
        key = ", ".join(f"__{planned.names.index(name)}" for name in planned.key)
        of_key = f"OVER (PARTITION BY {key})"
        net = net.selectExpr(
            "*",
            f"sum(greatest(-__net, 0)) {of_key} = 1 AND sum(greatest(__net, 0)) {of_key} = 1"
            " AS __paired",
        )
        change = (
            f"CASE WHEN NOT __paired THEN {change} WHEN __net < 0 THEN 'before'"
            " ELSE 'after' END"
        )
    shown = [f"__{at} AS {identifier(name)}" for at, name in enumerate(planned.names)]
    copies = "explode(sequence(CAST(1 AS BIGINT), abs(__net))) AS __copy"
    return net.selectExpr(
        f"{change} AS {identifier(planned.change_column)}", *shown, copies
    ).drop("__copy")


def order_changes(planned: Diff, rows: "DataFrame") -> "DataFrame":
    """Sort the rows of a diff by key and values, `before` rows first."""
    value_columns = [
        column.name
        for column in planned.columns
        if column.name not in planned.key and not has_map(column.type)
    ]
    rank = f"array_position({_RANKS}, {identifier(planned.change_column)}) AS __rank"
    by = [*map(identifier, planned.key), "__rank", *map(identifier, value_columns)]
    return rows.selectExpr("*", rank).orderBy(*by).drop("__rank")


def count_changes(planned: Diff, rows: "DataFrame") -> Counts:
    """Count the rows of a diff in one query; a changed row counts once."""
    rows_by_change = rows.groupBy(identifier(planned.change_column)).count().collect()
    counts = Counter({row[0]: row[1] for row in rows_by_change})
    return Counts(counts["added"], counts["removed"], changed=counts["after"])


def count_by(planned: Diff, rows: "DataFrame", column: str) -> list[dict[str, Any]]:
    """Count the rows of a diff by a column; a changed row counts for its new value."""
    change, by = identifier(planned.change_column), identifier(column)
    grouped = rows.groupBy(by, change).count()
    counts: dict[Any, Counter[str]] = {}
    for row in collect(grouped.orderBy(by)):
        counts.setdefault(row[0], Counter())[row[1]] = row[2]
    return [
        {
            column: value,
            "added": change_counts["added"],
            "removed": change_counts["removed"],
            "changed": change_counts["after"],
        }
        for value, change_counts in counts.items()
    ]


def sample_rows(engine: Engine, planned: Diff, most: int) -> list[dict[str, Any]]:
    """Return sample rows of both snapshots with current column names."""
    sample: list[dict[str, Any]] = []
    for snapshot_id in dict.fromkeys([planned.before, planned.after]):
        if snapshot_id is None:
            continue
        rows = read(engine, Pin(planned.table, snapshot_id))
        numbered = rows.selectExpr(*_numbered(planned, snapshot_id))
        for row in collect(numbered.limit(most)):
            sample.append(dict(zip(planned.names, row, strict=True)))
    return sample


def _before(engine: Engine, planned: Diff) -> "DataFrame":
    is_unread = planned.is_empty or planned.is_append or planned.touched.only_adds
    where = "false" if is_unread else planned.where
    rows = read(engine, Pin(planned.table, planned.before), where)
    return rows.selectExpr(*_numbered(planned, planned.before), "-1 AS __net")


def _after(engine: Engine, planned: Diff) -> "DataFrame":
    pin = Pin(planned.table, planned.after)
    where = "false" if planned.is_empty else planned.where
    if planned.is_append and not planned.is_empty:
        pin, where = replace(pin, since_snapshot_id=planned.before), None
    rows = read(engine, pin, where)
    return rows.selectExpr(*_numbered(planned, planned.after), "1 AS __net")


def _numbered(planned: Diff, snapshot_id: int | None) -> list[str]:
    # Column names can contain dots and quotes, which aggregates by name would parse.
    return [f"{value} AS __{at}" for at, value in enumerate(planned.terms(snapshot_id))]


def _net(columns: Sequence[SharedColumn], rows: "DataFrame") -> "DataFrame":
    """Return the rows whose counts differ between the snapshots."""
    from pyspark.sql.functions import expr

    compared, keys = [], []
    aggregates = [expr("sum(__net) AS __net")]
    for at, column in enumerate(columns):
        if has_map(column.type):
            compared.append(f"{comparable_sql(column.type, f'__{at}')} AS __comparable_{at}")
            keys.append(f"__comparable_{at}")
            aggregates.append(expr(f"first(__{at}) AS __{at}"))
        else:
            keys.append(f"__{at}")
    change_counts = rows.selectExpr("*", *compared).groupBy(*keys).agg(*aggregates)
    return change_counts.where("__net <> 0")
