"""Whether what somebody takes for the key of a table tells its rows apart, in both snapshots of
a diff.
"""

from lakehouse.errors import UsageError
from lakehouse.iceberg.diff.diff_plan import Diff
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.pinned_frames import read


def check_unique(engine: Engine, planned: Diff) -> None:
    """Check that the key of a diff stands for one row each; reads its columns of both
    snapshots.

    By one that does not, a row that changed would be shown as added and removed, or two rows as
    one.

    :raises UsageError: when it does not; names the key, how many values stand for several rows,
        and for how many.
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
        values = "1 value stands" if counts["keys"] == 1 else f"{counts['keys']:,} values stand"
        raise UsageError(
            f"The key {', '.join(planned.key)} does not tell the rows of {planned.table} apart:"
            f" in snapshot {snapshot_id}, {values} for several rows, one of them for"
            f" {counts['most_rows']:,}.",
            next_step="Name more columns with --key, or a key that is unique.",
        )
