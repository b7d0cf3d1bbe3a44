"""Starts a run of a job once, whatever AWS answers: a run of which the answer was lost is looked
for, since it goes on and writes the table.

No start is repeated whose outcome is not known: of two runs, one would be watched by nobody.
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
"""Between starts that AWS surely did not begin."""
_POLL_SECONDS = 5.0
_APPEARS_WITHIN_SECONDS = 60.0
"""So long after the start is a run looked for that nobody finds."""
_UNKNOWN_SECONDS = 3600.0
"""A run is given up that could not be looked for in that long."""
_TOO_MANY = {
    "RequestLimitExceeded",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_OUTDATED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
"""Of credentials that are renewed meanwhile."""
_OF_ANOTHER_RUN = "ConcurrentRunsExceededException"
_CLIENT_FAILED, _TIMED_OUT, _THROTTLED, _SERVER_FAILED = 400, 408, 429, 500


def start_once(
    service: JobService,
    arguments: Mapping[str, str],
    name: str,
    log: logging.Logger,
    pop_interrupt: Callable[[], bool],
) -> str:
    """Start a run, and return its id, also where AWS began it and its answer was lost.

    :param arguments: those of the run's script, which no other run has.
    :param pop_interrupt: says whether an interrupt came since it was last asked.
    :raises JobFailed: when AWS could not be asked for an hour whether there is a run; at once
        where it began none, for a run that goes on, and refuses to say whose that is.
    :raises DagsterExecutionInterruptedError: when an interrupt comes while AWS cannot be asked.
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
    lost: Exception
    _is_unanswered: bool = False

    def until_found(self) -> str | None:
        """Return the run; None where there is none after a while, or now, where AWS says that
        there is one.
        """
        began_at = time.monotonic()
        is_there = _is_of_another_run(self.lost)
        appears_within_seconds = 0.0 if is_there else _APPEARS_WITHIN_SECONDS
        while True:
            age_seconds = time.monotonic() - began_at
            try:
                run_id = self.service.find(self.arguments, self.name)
            except Exception as error:
                if is_there and _is_denied(error):
                    # For this start AWS began nothing, so that nothing is to be locked for.
                    raise self._of_unknown_owner(error) from error
                # As with a run that is waited for: it goes on, and the lock is held for it.
                self._give_up_sometime(error, age_seconds)
            else:
                if run_id or age_seconds >= appears_within_seconds:
                    return run_id
            time.sleep(_POLL_SECONDS)

    def _of_unknown_owner(self, error: Exception) -> JobFailed:
        return JobFailed(
            f"AWS began no job for {self.name}: {self.lost}. Whether the run that goes on is one"
            f" of its own is not known, since AWS refuses to list the runs: {error}.",
            next_step="Allow who runs `lakehouse` glue:GetJobRuns, and look in AWS Glue which run"
            " goes on.",
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
                f" {self.lost}, and it cannot be looked for: {error}.",
                next_step="Look in AWS whether it runs, and stop it there.",
            ) from error


def _may_be_repeated(error: Exception) -> bool:
    """Whether AWS surely began nothing, and may do so a moment later."""
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _code(error) in _TOO_MANY
    return isinstance(error, exceptions.ConnectionError)


def _is_refused(error: Exception) -> bool:
    """Whether AWS surely began nothing: it said so, or it was not reached."""
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

    if isinstance(error, ClientError):
        return _status(error) < _SERVER_FAILED and not _is_of_another_run(error)
    return isinstance(error, BotoCoreError) and not isinstance(error, HTTPClientError)


def _is_denied(error: Exception) -> bool:
    """Whether AWS refused a request in a way that no repetition mends."""
    from botocore.exceptions import ClientError

    if not isinstance(error, ClientError):
        return False
    status = _status(error)
    if not _CLIENT_FAILED <= status < _SERVER_FAILED or status in (_TIMED_OUT, _THROTTLED):
        return False
    return _code(error) not in _TOO_MANY | _OUTDATED


def _is_of_another_run(error: Exception) -> bool:
    """Whether AWS began nothing because a run goes on, which may be one that it began before."""
    from botocore.exceptions import ClientError

    return isinstance(error, ClientError) and _code(error) == _OF_ANOTHER_RUN


def _code(error: "ClientError") -> str:
    return str(error.response.get("Error", {}).get("Code"))


def _status(error: "ClientError") -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
