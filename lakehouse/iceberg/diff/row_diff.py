"""The change between two snapshots of a table: the rows added, removed and changed, and no
others.

A commit may rewrite files whose rows stay as they were: a merge by copy-on-write, a partition
computed again, a compaction. So what counts is not which files came and went, but the rows in
them: those that both snapshots hold are taken off against each other, as often as they stand in
each, and what is left are the changes. A removed and an added row of the same key are one
changed row.

Only rows of files that differ are compared; those of the others are the same in both. This
holds for any two snapshots, whether or not one descends from the other, and with delete files,
which change rows of files that stay.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.diff.columns import SharedColumn
from lakehouse.iceberg.diff.diff_plan import Diff
from lakehouse.iceberg.metadata.collected_rows import collect
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.tables.quoting import identifier
from lakehouse.tables.types import comparable_sql, has_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANKS = "array('removed', 'before', 'after', 'added')"


@dataclass(frozen=True)
class Counts:
    """How many rows were added and removed, and how many became another row of the same key."""

    added: int = 0
    removed: int = 0
    changed: int = 0


def apply_diff(engine: Engine, planned: Diff) -> "DataFrame":
    """Return the rows that differ between two snapshots of a table, each with its `change`.

    That is `added` or `removed`; or `before` and `after`, for the two rows of a key whose row
    changed. Without a key, or where a key stands for several of these rows, they are added and
    removed, as often as there are more or fewer. Columns have the names that they have now, and
    are NULL where a snapshot has not got them.

    The rows are in no order; Spark reads when it is asked for them.
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
    """Return the rows of a diff by key and then by their values, what a row was before what it
    became.
    """
    others = [
        column.name
        for column in planned.columns
        if column.name not in planned.key and not has_map(column.type)
    ]
    rank = f"array_position({_RANKS}, {identifier(planned.change_column)}) AS __rank"
    by = [*map(identifier, planned.key), "__rank", *map(identifier, others)]
    return rows.selectExpr("*", rank).orderBy(*by).drop("__rank")


def count_changes(planned: Diff, rows: "DataFrame") -> Counts:
    """Count the rows of a diff in one query; a changed row counts once."""
    rows_by_change = rows.groupBy(identifier(planned.change_column)).count().collect()
    counts = Counter({row[0]: row[1] for row in rows_by_change})
    return Counts(counts["added"], counts["removed"], changed=counts["after"])


def count_by(planned: Diff, rows: "DataFrame", column: str) -> list[dict[str, Any]]:
    """Count the rows of a diff by the values of a column, in their order; a changed row counts
    once, for the value that it has by then.
    """
    change, by = identifier(planned.change_column), identifier(column)
    grouped = rows.groupBy(by, change).count()
    counts: dict[Any, Counter[str]] = {}
    for row in collect(grouped.orderBy(by)):
        counts.setdefault(row[0], Counter())[row[1]] = row[2]
    return [
        {
            column: value,
            "added": counted["added"],
            "removed": counted["removed"],
            "changed": counted["after"],
        }
        for value, counted in counts.items()
    ]


def sample_rows(engine: Engine, planned: Diff, most: int) -> list[dict[str, Any]]:
    """Return some rows of each of the two snapshots, under the names of now: among such are
    those that differ.
    """
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
    where = "false" if is_unread else planned.where_before
    rows = read(engine, Pin(planned.table, planned.before), where)
    return rows.selectExpr(*_numbered(planned, planned.before), "-1 AS __net")


def _after(engine: Engine, planned: Diff) -> "DataFrame":
    pin = Pin(planned.table, planned.after)
    where = "false" if planned.is_empty else planned.where_after
    if planned.is_append and not planned.is_empty:
        pin, where = replace(pin, since_snapshot_id=planned.before), None
    rows = read(engine, pin, where)
    return rows.selectExpr(*_numbered(planned, planned.after), "1 AS __net")


def _numbered(planned: Diff, snapshot_id: int | None) -> list[str]:
    # Names of columns may hold dots and quotes, which an aggregate by name takes apart.
    return [f"{value} AS __{at}" for at, value in enumerate(planned.terms(snapshot_id))]


def _net(columns: Sequence[SharedColumn], rows: "DataFrame") -> "DataFrame":
    """Return each row once, with how many more of it there are in the later snapshot; none
    where there are as many.
    """
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
    counted = rows.selectExpr("*", *compared).groupBy(*keys).agg(*aggregates)
    return counted.where("__net <> 0")
