"""Erasure in Dagster: the job that continues a request, and the sensor that starts it when due.

Both know only the id of a request. No value of a person is in configuration, tags or logs.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from lakehouse.errors import ErasureFailed, LakehouseError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.orchestration.dagster_internals import add_run_tags
from lakehouse.orchestration.metadata_keys import ErasureMetadata
from lakehouse.orchestration.runs.erasure_runs import JOB, REQUEST_TAG, SENSOR
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.orchestration.withheld_values import cause_without_data
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.folder import erase_lock
from lakehouse.privacy.requests import (
    RETRY_AFTER,
    failed_run,
    finished_at,
    is_due,
    read_request,
    read_requests,
)
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import is_file_locked

if TYPE_CHECKING:
    from lakehouse.privacy.erasure import Erasure

_OP = "carry_on_request"
_SECONDS = 300
_NAMED_OBSTACLES = 3


class ErasureConfig(dg.Config):
    """The request that a run continues."""

    request: str = Field(
        description="The id of a request, such as R-17; never a value of a person."
    )


@dataclass(frozen=True)
class Eraser:
    """Creates the definitions of a deployment."""

    open_erasable: Callable[[Settings, Engine], Erasable]
    read_settings: Callable[[], Settings]

    def definitions(self) -> dg.Definitions:
        """Return the job and the sensor, which runs by default."""
        return dg.Definitions(jobs=[self._job()], sensors=[self._sensor()])

    def _job(self) -> dg.JobDefinition:
        @dg.op(
            name=_OP,
            description="Continues a request to erase people as far as possible.",
            out=dg.Out(dg.Nothing),
            required_resource_keys={"engine", "settings"},
            # A second run would be rejected.
            pool=JOB,
        )
        def carry_on(context: dg.OpExecutionContext, config: ErasureConfig) -> None:
            self._run(context, config.request)

        @dg.job(
            name=JOB,
            description=(
                "Continues a request to erase people, like `lakehouse erase --request ID`. Orphan"
                " files are retained until they are a day old."
            ),
        )
        def erase_people() -> None:
            carry_on()

        return erase_people

    def _run(self, context: dg.OpExecutionContext, request_id: str) -> None:
        from lakehouse.privacy.erasure import How
        from lakehouse.privacy.run_erasure import erase

        # An unknown id fails before the run is tagged.
        read_request(context.resources.settings, request_id)
        # A run that was started by hand counts too.
        add_run_tags(context.instance, context.run_id, {REQUEST_TAG: request_id})

        def progress(what: str) -> AbstractContextManager[object]:
            context.log.info(what)
            return nullcontext()

        resources = context.resources
        erasable = self.open_erasable(resources.settings, resources.engine)
        how = How(by=f"{JOB}:{context.run_id}")
        with _values_withheld(request_id):
            erasure = erase(erasable, request_id, (), how, progress=progress)
        metadata = metadata_of(erasure)
        if erasure.failed_search:
            first = "; ".join(erasure.failed_search.obstacles[:_NAMED_OBSTACLES])
            failed = ErasureFailed(
                f"Request {request_id} is {erasure.request.state}, and could not be proved:"
                f" {first}.",
                next_step="Clean all places of its metadata; it is retried automatically.",
            )
            raise dg.Failure(str(failed), metadata, allow_retries=False) from failed
        context.log.info(f"{request_id} is {erasure.request.state}.")
        context.add_output_metadata(metadata)

    def _sensor(self) -> dg.SensorDefinition:
        @dg.sensor(
            name=SENSOR,
            job_name=JOB,
            minimum_interval_seconds=_SECONDS,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                "Continues interrupted requests to erase people, and those that waited for files"
                " to be a day old; one run at a time. It retries a day after a failure;"
                " exceptions wait for an operator."
            ),
        )
        def erase_when_due(
            context: dg.SensorEvaluationContext,
        ) -> dg.RunRequest | dg.SkipReason:
            return self._evaluate(context.instance, datetime.now(UTC))

        return erase_when_due

    def _evaluate(
        self, instance: dg.DagsterInstance, now: datetime
    ) -> dg.RunRequest | dg.SkipReason:
        settings = self.read_settings()
        due = [request for request in read_requests(settings) if is_due(request, now)]
        if not due:
            return dg.SkipReason("No request to erase people is due.")
        fail_orphaned_runs(instance)
        working = instance.get_run_records(
            dg.RunsFilter(job_name=JOB, statuses=UNFINISHED), limit=1
        )
        if working:
            run_id = working[0].dagster_run.run_id
            return dg.SkipReason(f"Run {run_id[:8]} is active; one at a time.")
        if is_file_locked(erase_lock(settings)):
            return dg.SkipReason("A process erases people from this home; one at a time.")
        for request in due:
            failed = failed_run(instance, request)
            if failed is None or finished_at(failed) + RETRY_AFTER <= now:
                request_id = request.request_id
                tags = {REQUEST_TAG: request_id}
                return dg.RunRequest(run_config=run_config(request_id), tags=tags)
        return dg.SkipReason("Runs failed; a request is retried a day after its last run.")


def run_config(request_id: str) -> dict[str, Any]:
    """Return the configuration of a run that continues a request."""
    return {"ops": {_OP: {"config": {"request": request_id}}}}


@contextmanager
def _values_withheld(request_id: str) -> Iterator[None]:
    """Replace errors whose text can quote a value: Dagster stores them with their cause."""
    try:
        yield
    except LakehouseError as error:
        raise error from None
    except Exception as error:
        raise ErasureFailed(
            f"Request {request_id} could not be continued: {cause_without_data(error)}.",
            next_step=(
                "Its text can quote a value, and is not stored; `lakehouse erase --request"
                f" {request_id}` shows it."
            ),
        ) from None


def metadata_of(erasure: "Erasure") -> dict[str, Any]:
    """Return the state of a request as metadata: counts by table and place, no value."""
    request, record, report = erasure.request, erasure.record, erasure.search_report
    pending = request.physical_due_at
    return ErasureMetadata(
        request=request.request_id,
        state=request.state,
        due_at=request.due_at.isoformat(),
        physical_due_at=pending.isoformat() if pending else None,
        rows={table: dict(by_ref) for table, by_ref in record.rows.items()},
        rewritten_files=len(record.files),
        recomputed=record.recomputed,
        places={place.place: place.outcome for place in record.places},
        waiting=record.pending_removals,
        findings=report.obstacles if report else (),
    ).to_metadata()
