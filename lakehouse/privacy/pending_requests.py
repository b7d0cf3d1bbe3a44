"""Which requests can be carried on by themselves, and when one whose runs failed is tried again."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import dagster as dg

from lakehouse.orchestration.erasure_runs import JOB, REQUEST_TAG
from lakehouse.privacy.states import Request

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=15), timedelta(days=1)
"""How long a request waits after its last run; twice as long after each further one that failed."""
_STATUS = dg.DagsterRunStatus
_FAILED = (_STATUS.FAILURE, _STATUS.CANCELED)
_ENDED = (*_FAILED, _STATUS.SUCCESS)
_MOST_RUNS = 20


@dataclass(frozen=True)
class PastRuns:
    """The runs of a request so far."""

    newest_id: str = ""
    """Of the newest, whether it ended or not; nothing where there was none."""
    last_ended_at: datetime | None = None
    failed: tuple[dg.RunRecord, ...] = ()
    """Those that failed or were stopped since the last that did not, and since the request
    changed its state; the newest first.
    """

    @property
    def next_at(self) -> datetime | None:
        """When the request may be tried again; None where there was no run."""
        if self.last_ended_at is None:
            return None
        doublings = min(max(len(self.failed) - 1, 0), _MOST_RUNS)
        return self.last_ended_at + min(FIRST_PAUSE * (1 << doublings), LONGEST_PAUSE)


def is_due(request: Request, now: datetime) -> bool:
    """Whether a request can be carried on without a person: it was left before its end, or what
    it waited for has come. An exception waits for those who have to see to it.
    """
    if request.state == "pending_physical":
        return request.physical_due_at is None or request.physical_due_at <= now
    return request.state in ("requested", "logically_deleted")


def first_due(requests: Iterable[Request], now: datetime) -> datetime | None:
    """Return when the first of the requests that wait for their time is due; None where none
    waits.
    """
    moments = [request.physical_due_at for request in requests if not is_due(request, now)]
    return min((moment for moment in moments if moment is not None), default=None)


def past_runs(instance: dg.DagsterInstance, request: Request) -> PastRuns:
    """Return the runs of a request so far, as far as Dagster remembers them."""
    filters = dg.RunsFilter(job_name=JOB, tags={REQUEST_TAG: request.request_id})
    records = instance.get_run_records(filters, limit=_MOST_RUNS)
    if not records:
        return PastRuns()
    ended = [record for record in records if record.dagster_run.status in _ENDED]
    since = request.changed_at or request.requested_at

    def is_in_vain(record: dg.RunRecord) -> bool:
        return record.dagster_run.status in _FAILED and ended_at(record) >= since

    return PastRuns(
        records[0].dagster_run.run_id,
        max(map(ended_at, ended), default=None),
        tuple(takewhile(is_in_vain, ended)),
    )


def ended_at(record: dg.RunRecord) -> datetime:
    """Return when a run ended."""
    if record.end_time:
        return datetime.fromtimestamp(record.end_time, UTC)
    return record.update_timestamp.replace(tzinfo=UTC)
