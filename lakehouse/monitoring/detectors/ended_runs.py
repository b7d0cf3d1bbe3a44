"""The runs that ended since the last round of monitoring."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.monitor_context import MonitorContext

_FIRST_ROUND = timedelta(days=7)
# Runs are seen by when they ended, on clocks that may differ and in transactions that may be
# slow.
_OVERLAP = timedelta(minutes=5)


def ended_runs(
    context: MonitorContext,
    cursor: str,
    statuses: Sequence[dg.DagsterRunStatus],
    job_name: str | None = None,
) -> tuple[list[dg.DagsterRun], dict[str, Any]]:
    """Return the runs that ended in some way since the last round, the oldest first, and the
    cursor of the next; in the first round, those of the last week.

    :param cursor: name of the cursor.
    """
    known = context.state.cursors.get(cursor, {})
    since = context.now - _FIRST_ROUND
    if known:
        since = datetime.fromisoformat(known["until"]) - _OVERLAP
    filters = dg.RunsFilter(statuses=statuses, job_name=job_name, updated_after=since)
    records = context.instance.get_run_records(
        filters, order_by="update_timestamp", ascending=True
    )
    runs = []
    for record in records:
        # A tag that is added to an old run makes it a run that was changed, and not one that
        # ended anew.
        is_old = record.end_time and record.end_time < since.timestamp()
        if not is_old and record.dagster_run.run_id not in known.get("seen", ()):
            runs.append(record.dagster_run)
    seen = [record.dagster_run.run_id for record in records]
    return runs, {"until": context.now.isoformat(), "seen": seen}
