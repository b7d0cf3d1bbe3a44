"""Check that a diff key is unique in both snapshots."""

from lakehouse.errors import UsageError
from lakehouse.iceberg.diff.diff_plan import Diff
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.pinned_frames import read


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
