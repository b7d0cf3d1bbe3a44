"""The job and the sensor of erasure on a small home, and what Dagster remembers of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from lakehouse.orchestration.runs.erasure_runs import JOB, REQUEST_TAG, SENSOR
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.privacy import run_erasure as erasing
from lakehouse.privacy.erasure_job import Eraser, run_config
from lakehouse.privacy.identity import Named
from lakehouse.privacy.requests import Request, change_request, open_request
from lakehouse_tests.privacy.an_erasure import NAMED, Home

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


@dataclass(frozen=True)
class InDagster:
    """The definitions of a home, on its instance."""

    home: Home
    instance: dg.DagsterInstance

    @property
    def definitions(self) -> dg.Definitions:
        """The job and the sensor, with what a run of the project is given."""
        home = self.home
        erasing = Eraser(lambda settings, engine: home.erasable, lambda: home.settings)
        resources = {"engine": home.engine, "settings": home.settings}
        return dg.Definitions.merge(erasing.definitions(), dg.Definitions(resources=resources))

    def run(self, request: str = "R-1", **how: Any) -> dg.ExecuteInProcessResult:
        """Run the job in this process."""
        job = self.definitions.resolve_job_def(JOB)
        return job.execute_in_process(
            run_config(request), instance=self.instance, raise_on_error=False, **how
        )

    def ask(self) -> dg.RunRequest | dg.SkipReason:
        """Let the sensor look once."""
        sensor = self.definitions.resolve_sensor_def(SENSOR)
        asked = sensor(dg.build_sensor_context(self.instance))
        assert isinstance(asked, dg.RunRequest | dg.SkipReason)
        return asked

    def reason(self) -> str:
        """Let the sensor look once, and return why it asks for nothing."""
        asked = self.ask()
        assert isinstance(asked, dg.SkipReason)
        return asked.skip_message or ""

    def add_run(self, status: dg.DagsterRunStatus, request: str = "R-1") -> str:
        """Add a run of the job that goes on."""
        run = dg.DagsterRun(job_name=JOB, status=status, tags={REQUEST_TAG: request})
        self.instance.add_run(run)
        return run.run_id

    def request(self, request: str = "R-1") -> None:
        """Make a request as a call does that is killed at once."""
        open_request(self.home.settings, request, NAMED, why="", by="me")

    def request_of_nobody(self) -> None:
        """Make a request of somebody whom nothing holds."""
        nobody = [Named("customer_id", "5551234567")]
        open_request(self.home.settings, "R-1", nobody, why="", by="me")

    def change(self, request: str = "R-1", **parts: Any) -> Request:
        """Change a request by hand."""
        return change_request(
            self.home.settings, request, lambda known: replace(known, **parts)
        )


def let_erasures_do(patch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    """Let a call that carries a request on do this alone."""
    patch.setattr(erasing, "STEPS", [("Testing", lambda _: step())])


def fail_with(error: Exception) -> Callable[[], None]:
    """Return a step that fails."""

    def fail() -> None:
        raise error

    return fail


@contextmanager
def in_dagster(home: Home) -> Iterator[InDagster]:
    """Open the instance of a home."""
    with open_instance(home.settings) as instance:
        yield InDagster(home, instance)


def metadata_of(result: dg.ExecuteInProcessResult) -> Mapping[str, Any]:
    """Return what the output of a run shows, or its failure."""
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.user_failure_data:
            return _plain(event.step_failure_data.user_failure_data.metadata)
        if event.is_successful_output:
            return _plain(event.step_output_data.metadata)
    return {}


def _plain(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value.value for name, value in metadata.items()}


def error_of(result: dg.ExecuteInProcessResult) -> str:
    """Return all that Dagster keeps of the error of a run."""
    (failed,) = (event for event in result.all_events if event.is_step_failure)
    return str(failed.step_failure_data)
