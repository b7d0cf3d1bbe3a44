"""The job that makes the site, and the sensor that asks for it after runs where the environment
says where the site goes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from lakehouse.orchestration.runs import UNFINISHED
from lakehouse.settings import Settings
from lakehouse.site.make_site import make_site
from lakehouse.site.read_site import SiteSource

JOB = "make_docs"
SENSOR = "docs_after_runs"
_SECONDS = 60
_ANEW_AFTER = timedelta(hours=1)
"""How old the site may be without a run: what is late is so by time alone."""
_SETTLES = timedelta(seconds=45)
"""How long after its end a run is waited with, until what it measured is recorded too."""
_STATUS = dg.DagsterRunStatus
_ENDED = [_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED]


@dataclass(frozen=True)
class SiteMaker:
    """What makes the site by itself."""

    source: SiteSource
    read_settings: Callable[[], Settings]

    def definitions(self) -> dg.Definitions:
        """Return the job and its sensor, which is on and skips where no place is set."""
        return dg.Definitions(jobs=[self._job()], sensors=[self._sensor()])

    def _job(self) -> dg.JobDefinition:
        @dg.op(
            name="make_site",
            description="Reads what there is to tell of the tables, and writes what changed.",
            out=dg.Out(dg.Nothing),
        )
        def make(context: dg.OpExecutionContext) -> None:
            now = datetime.now(UTC)
            made = make_site(self.source, self.read_settings(), context.instance, now)
            context.log.info(
                f"The site is at {made.place}: {made.written} pages written,"
                f" {made.unchanged} as they were, {made.removed} removed."
            )

        @dg.job(
            name=JOB,
            description=(
                "Makes the static site of the tables, as `lakehouse docs` does; starts no Spark."
            ),
        )
        def make_docs() -> None:
            make()

        return make_docs

    def _sensor(self) -> dg.SensorDefinition:
        @dg.sensor(
            name=SENSOR,
            job_name=JOB,
            minimum_interval_seconds=_SECONDS,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                "Asks for the site after runs, and once an hour, where LAKEHOUSE_DOCS says"
                " where it goes; else it skips."
            ),
        )
        def docs_after_runs(
            context: dg.SensorEvaluationContext,
        ) -> dg.RunRequest | dg.SkipReason:
            if not self.read_settings().docs:
                return dg.SkipReason("LAKEHOUSE_DOCS is not set.")
            working = dg.RunsFilter(job_name=JOB, statuses=UNFINISHED)
            if context.instance.get_run_records(working, limit=1):
                return dg.SkipReason("The site is being made.")
            until = datetime.now(UTC) - _SETTLES
            if not _is_due(context.instance, context.cursor, until):
                return dg.SkipReason("No run has ended since the site was asked for.")
            context.update_cursor(until.isoformat())
            return dg.RunRequest()

        return docs_after_runs


def _is_due(instance: dg.DagsterInstance, cursor: str | None, until: datetime) -> bool:
    """Whether a run ended up to a moment, since the one that the site was last asked for as
    of, or that is too long ago.
    """
    if not cursor:
        return True
    since = datetime.fromisoformat(cursor)
    if until - since >= _ANEW_AFTER:
        return True
    changed = dg.RunsFilter(statuses=_ENDED, updated_after=since)
    # A tag that is added to a run changes it, and ends it no second time.
    return any(
        record.dagster_run.job_name != JOB
        and since.timestamp() < (record.end_time or 0) <= until.timestamp()
        for record in instance.get_run_records(changed)
    )
