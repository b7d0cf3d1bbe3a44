"""Starts a job run exactly once: searches for the run if AWS does not respond.

An ambiguous start is not retried: a second run would write the table without supervision.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.errors import JobFailed
from lakehouse.orchestration.table_jobs.job_services import JobService

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
"""Delays between attempts that AWS rejected."""
_POLL_SECONDS = 5.0
_APPEARS_WITHIN_SECONDS = 60.0
"""Time after a start until a search that finds no run gives up."""
_UNKNOWN_SECONDS = 3600.0
"""Time until a search that AWS does not answer gives up."""
_TOO_MANY = {
    "RequestLimitExceeded",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_OUTDATED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
"""Errors of expired credentials, which are renewed."""
_OF_ANOTHER_RUN = "ConcurrentRunsExceededException"
_CLIENT_FAILED, _TIMED_OUT, _THROTTLED, _SERVER_FAILED = 400, 408, 429, 500


def start_once(
    service: JobService,
    arguments: Mapping[str, str],
    name: str,
    log: logging.Logger,
    pop_interrupt: Callable[[], bool],
) -> str:
    """Start a run and return its id, even without a response of AWS.

    :param arguments: script arguments, unique to this run.
    :param pop_interrupt: whether an interrupt arrived since the last call.
    :raises JobFailed: AWS cannot list runs for an hour, or a run exists whose owner AWS refuses
        to show.
    :raises DagsterExecutionInterruptedError: an interrupt arrived while AWS did not respond.
    """
    try:
        return _start(service, arguments, name)
    except Exception as error:
        if _is_refused(error):
            raise
        log.warning(f"Whether AWS runs the job is not known, and it is looked for: {error}")
        search = _Search(service, arguments, name, log, pop_interrupt, error)
        run_id = search.until_found()
        if run_id is None:
            raise
        return run_id


def _start(service: JobService, arguments: Mapping[str, str], name: str) -> str:
    for pause_seconds in _PAUSES_SECONDS:
        try:
            return service.start(arguments, name)
        except Exception as error:
            if not _may_be_repeated(error):
                raise
        time.sleep(pause_seconds)
    return service.start(arguments, name)


@dataclass
class _Search:
    service: JobService
    arguments: Mapping[str, str]
    name: str
    log: logging.Logger
    pop_interrupt: Callable[[], bool]
    start_error: Exception
    _is_unanswered: bool = False

    def until_found(self) -> str | None:
        """Return the run id; None if no run appears in time."""
        started_at = time.monotonic()
        is_there = _is_of_another_run(self.start_error)
        appears_within_seconds = 0.0 if is_there else _APPEARS_WITHIN_SECONDS
        while True:
            age_seconds = time.monotonic() - started_at
            try:
                run_id = self.service.find(self.arguments, self.name)
            except Exception as error:
                if is_there and _is_denied(error):
                    # AWS started nothing for this request, so no lock is required.
                    raise self._of_unknown_owner(error) from error
                # The run can exist: continue and keep the lock.
                self._give_up_sometime(error, age_seconds)
            else:
                if run_id or age_seconds >= appears_within_seconds:
                    return run_id
            time.sleep(_POLL_SECONDS)

    def _of_unknown_owner(self, error: Exception) -> JobFailed:
        return JobFailed(
            f"AWS began no job for {self.name}: {self.start_error}. Whether the running job"
            f" belongs to it is unknown, since AWS refuses to list the runs: {error}.",
            next_step="Grant glue:GetJobRuns to the user of `lakehouse`, and check in AWS Glue"
            " which run is active.",
        )

    def _give_up_sometime(self, error: Exception, age_seconds: float) -> None:
        if not self._is_unanswered:
            self.log.warning(f"The job cannot be looked for, which is tried again: {error}")
        self._is_unanswered = True
        if self.pop_interrupt():
            self.log.warning(
                "The job is not looked for any longer, and may go on: look in AWS."
            )
            raise dg.DagsterExecutionInterruptedError
        if age_seconds > _UNKNOWN_SECONDS:
            raise JobFailed(
                f"Whether AWS runs the job for {self.name} is not known: its start ended in"
                f" {self.start_error}, and it cannot be looked for: {error}.",
                next_step="Look in AWS whether it runs, and stop it there.",
            ) from error


def _may_be_repeated(error: Exception) -> bool:
    """Whether AWS started nothing, and a later attempt can succeed."""
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _code(error) in _TOO_MANY
    return isinstance(error, exceptions.ConnectionError)


def _is_refused(error: Exception) -> bool:
    """Whether AWS started nothing: it rejected the request or was not reached."""
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

    if isinstance(error, ClientError):
        return _status(error) < _SERVER_FAILED and not _is_of_another_run(error)
    return isinstance(error, BotoCoreError) and not isinstance(error, HTTPClientError)


def _is_denied(error: Exception) -> bool:
    """Whether AWS rejected a request permanently."""
    from botocore.exceptions import ClientError

    if not isinstance(error, ClientError):
        return False
    status = _status(error)
    if not _CLIENT_FAILED <= status < _SERVER_FAILED or status in (_TIMED_OUT, _THROTTLED):
        return False
    return _code(error) not in _TOO_MANY | _OUTDATED


def _is_of_another_run(error: Exception) -> bool:
    """Whether AWS started nothing because of a running job, possibly from an earlier attempt."""
    from botocore.exceptions import ClientError

    return isinstance(error, ClientError) and _code(error) == _OF_ANOTHER_RUN


def _code(error: "ClientError") -> str:
    return str(error.response.get("Error", {}).get("Code"))


def _status(error: "ClientError") -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
