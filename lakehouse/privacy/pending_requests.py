"""Decides which requests can be continued automatically, and when a failed one is retried."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import dagster as dg

from lakehouse.orchestration.erasure_runs import JOB, REQUEST_TAG
from lakehouse.privacy.requests import Request

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=15), timedelta(days=1)
"""Pause after the last run; doubled after each further failed one."""
_STATUS = dg.DagsterRunStatus
_FAILED = (_STATUS.FAILURE, _STATUS.CANCELED)
_FINISHED = (*_FAILED, _STATUS.SUCCESS)
_MOST_RUNS = 20


@dataclass(frozen=True)
class PastRuns:
    """The runs of a request."""

    newest_id: str = ""
    """The newest run, finished or not; empty if there is none."""
    last_finished_at: datetime | None = None
    failed: tuple[dg.RunRecord, ...] = ()
    """Failed and canceled runs since the last successful one and the last change of state,
    newest first.
    """

    @property
    def next_at(self) -> datetime | None:
        """When the request can be retried; None if there is no run."""
        if self.last_finished_at is None:
            return None
        doublings = min(max(len(self.failed) - 1, 0), _MOST_RUNS)
        return self.last_finished_at + min(FIRST_PAUSE * (1 << doublings), LONGEST_PAUSE)


def is_due(request: Request, now: datetime) -> bool:
    """Return whether a request can be continued automatically: it was interrupted, or retained
    files are due. An exception waits for an operator.
    """
    if request.state == "pending_physical":
        return request.physical_due_at is None or request.physical_due_at <= now
    return request.state in ("requested", "logically_deleted")


def past_runs(instance: dg.DagsterInstance, request: Request) -> PastRuns:
    """Return the runs of a request in Dagster."""
    filters = dg.RunsFilter(job_name=JOB, tags={REQUEST_TAG: request.request_id})
    records = instance.get_run_records(filters, limit=_MOST_RUNS)
    if not records:
        return PastRuns()
    finished = [record for record in records if record.dagster_run.status in _FINISHED]
    since = request.changed_at or request.requested_at

    def is_recent_failure(record: dg.RunRecord) -> bool:
        return record.dagster_run.status in _FAILED and finished_at(record) >= since

    return PastRuns(
        records[0].dagster_run.run_id,
        max(map(finished_at, finished), default=None),
        tuple(takewhile(is_recent_failure, finished)),
    )


def finished_at(record: dg.RunRecord) -> datetime:
    """Return when a run finished."""
    if record.end_time:
        return datetime.fromtimestamp(record.end_time, UTC)
    return record.update_timestamp.replace(tzinfo=UTC)
