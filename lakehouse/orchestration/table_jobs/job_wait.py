"""Runs a job to its end despite AWS errors; an interrupt stops the job and waits for its end.

The caller owns the locks of the tables that the job writes.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lakehouse.orchestration.table_jobs.job_services import JobService, JobState

_POLL_SECONDS = 5.0
_TURN_SECONDS = 1.0
"""Delay until an interrupt is handled."""
_UNKNOWN_SECONDS = 3600.0
"""Time without a known state until a run is given up."""


@dataclass(frozen=True)
class JobEnd:
    """Result of a job run."""

    run_id: str
    state: JobState | None
    """Final state; None if it is unknown and the run may continue."""
    is_interrupted: bool = False


@contextmanager
def holding_interrupts() -> Iterator[Callable[[], bool]]:
    """Hold SIGINT and SIGTERM back in the block, and yield a function that returns whether one
    arrived since its last call.
    """
    arrived: list[int] = []

    def pop() -> bool:
        is_interrupted = bool(arrived)
        arrived.clear()
        return is_interrupted

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = [signal.signal(number, lambda *_: arrived.append(1)) for number in numbers]
    try:
        yield pop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def run_to_end(
    service: JobService,
    start: Callable[[], str],
    log: logging.Logger,
    look: Callable[[], None],
    pop_interrupt: Callable[[], bool],
) -> JobEnd:
    """Start a run and return after its end.

    An interrupt stops it; a second one gives up, and so does an hour without a state. The
    caller defers interrupts: an interrupted start could leave an unknown run.

    :param look: called every few seconds.
    :param pop_interrupt: whether an interrupt arrived since the last call.
    """
    run_id = start()
    log.info(f"AWS runs the job as {run_id}.")
    wait = _Wait(service, run_id, log, look, pop_interrupt)
    return JobEnd(run_id, wait.until_end(), wait.is_interrupted)


@dataclass
class _Wait:
    service: JobService
    run_id: str
    log: logging.Logger
    look: Callable[[], None]
    pop_interrupt: Callable[[], bool]
    is_interrupted: bool = False
    _is_stopping: bool = False
    _known_at: float = 0.0
    _is_unknown: bool = False
    _is_blind: bool = False

    def until_end(self) -> JobState | None:
        self._known_at = time.monotonic()
        while True:
            self._look()
            state = self._ask()
            if state and state.is_finished:
                return state
            if self._is_given_up():
                return None
            if self.is_interrupted and not self._is_stopping:
                self._stop()
            self._pause()

    def _look(self) -> None:
        try:
            self.look()
        except OSError as error:
            # Continue: without this process, the run would continue without table locks.
            if not self._is_blind:
                self.log.warning(
                    f"What {self.run_id} tells cannot be noted, and is noted later: {error}"
                )
            self._is_blind = True

    def _ask(self) -> JobState | None:
        try:
            state = self.service.state(self.run_id)
        except Exception as error:
            # Network or AWS outage: the run continues.
            if not self._is_unknown:
                self.log.warning(
                    f"How {self.run_id} is cannot be learned, and is asked again: {error}"
                )
            self._is_unknown = True
            return None
        self._known_at, self._is_unknown = time.monotonic(), False
        return state

    def _is_given_up(self) -> bool:
        is_again = self.is_interrupted and self.pop_interrupt()
        is_timed_out = time.monotonic() - self._known_at > _UNKNOWN_SECONDS
        if is_timed_out and not self._is_stopping:
            self._stop()
        if is_again or is_timed_out:
            self.log.warning(
                f"{self.run_id} is not waited for any longer, and may go on: stop it in AWS."
            )
        return is_again or is_timed_out

    def _stop(self) -> None:
        """Request a stop; retried in the next turn after an error."""
        try:
            self.service.stop(self.run_id)
        except Exception as error:
            self.log.warning(f"{self.run_id} was not stopped, which is tried again: {error}")
            return
        self._is_stopping = True
        self.log.warning(f"{self.run_id} is being stopped; its end is waited for.")

    def _pause(self) -> None:
        until = time.monotonic() + _POLL_SECONDS
        while time.monotonic() < until:
            time.sleep(_TURN_SECONDS)
            if not self.is_interrupted and self.pop_interrupt():
                self.is_interrupted = True
                return
