"""Whether what somebody takes for the key of a table tells its rows apart, in both snapshots of
a diff.
"""

from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.diff.diff_plan import Diff
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_unique(engine: Engine, planned: Diff) -> None:
    """Check that the key of a diff stands for one row each; reads its columns of both
    snapshots.

    By one that does not, a row that changed would be told as added and removed, or two rows as
    one.

    :raises UsageError: when it does not; names the key, how many values stand for several rows,
        and for how many.
    """
    for snapshot_id in dict.fromkeys([planned.after, planned.before]):
        if snapshot_id is not None:
            _check(planned, snapshot_id, _repeated(engine, planned, snapshot_id))


def _repeated(engine: Engine, planned: Diff, snapshot_id: int) -> "DataFrame":
    """Return how many rows stand for each value of the key that stands for several."""
    columns = {column.name: column for column in planned.columns}
    is_after = snapshot_id == planned.after
    values = [columns[name].after if is_after else columns[name].before for name in planned.key]
    names = [f"__{at}" for at in range(len(values))]
    aliased = [f"{value} AS {name}" for value, name in zip(values, names, strict=True)]
    rows = read(engine, Pin(planned.table, snapshot_id)).selectExpr(*aliased)
    return rows.groupBy(*names).count().where("count > 1")


def _check(planned: Diff, snapshot_id: int, repeated: "DataFrame") -> None:
    found = repeated.selectExpr("count(1) AS many", "max(count) AS most").collect()[0]
    if found["many"]:
        values = "1 value stands" if found["many"] == 1 else f"{found['many']:,} values stand"
        raise UsageError(
            f"The key {', '.join(planned.key)} does not tell the rows of {planned.table} apart:"
            f" in snapshot {snapshot_id}, {values} for several rows, one of them for"
            f" {found['most']:,}.",
            next_step="Name more columns with --key, or a key that is unique.",
        )
