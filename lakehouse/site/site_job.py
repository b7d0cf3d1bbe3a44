"""The job that makes the site, and the sensor that requests it after runs."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.settings import Settings
from lakehouse.site.pages import make_pages
from lakehouse.site.publish_site import PublishedSite, SiteBucket, SiteFolder, publish_site
from lakehouse.site.read_site import SiteSource, read_site
from lakehouse.storage.file_lock import file_lock

_WAIT_SECONDS = 120.0


def make_site(
    source: SiteSource,
    settings: Settings,
    instance: dg.DagsterInstance | None,
    now: datetime,
    *,
    out: str | None = None,
) -> PublishedSite:
    """Make the site of a home, in one process at a time.

    :param out: a folder or `s3://bucket/prefix`; default: the setting.
    :raises LakehouseError: another process is still making it.
    """
    destination = open_destination(settings, out)
    settings.make_home()
    busy = LakehouseError(
        f"Another process has been making the site for {_WAIT_SECONDS:.0f} s.",
        next_step="Try it again.",
    )
    with file_lock(settings.lock_dir / "docs.lock", _WAIT_SECONDS, busy):
        facts = read_site(source, settings, Catalog.of(settings), instance, now)
        return publish_site(make_pages(facts), destination)


def open_destination(settings: Settings, out: str | None) -> SiteFolder | SiteBucket:
    """Return the destination: the argument, the setting, or `site` of the home.

    :raises UsageError: the address is no folder and no bucket.
    """
    place = out or settings.docs or str(settings.home / "site")
    scheme, separator, path = place.partition("://")
    if not separator:
        folder = Path(place).expanduser().absolute()
        return SiteFolder(folder, is_private=folder.is_relative_to(settings.home))
    bucket, _, prefix = path.partition("/")
    if scheme != "s3" or not bucket:
        raise UsageError(
            f"{place!r} is no place for the site; expected a folder, or s3://bucket/prefix."
        )
    from lakehouse.storage.s3 import open_bucket

    store = open_bucket(replace(settings, bucket=bucket))
    return SiteBucket(store, f"{prefix.strip('/')}/" if prefix.strip("/") else "")


JOB = "make_docs"
SENSOR = "docs_after_runs"
_SECONDS = 60
_LONGEST_AGE = timedelta(hours=1)
"""Tables become late without a run."""
_SETTLES = timedelta(seconds=45)
"""The time after a run until its metrics are recorded."""
_STATUS = dg.DagsterRunStatus
_FINISHED = [_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED]


def site_definitions(
    source: SiteSource, read_settings: Callable[[], Settings]
) -> dg.Definitions:
    """Return the job and its sensor, which skips unless the setting names a destination."""

    @dg.op(
        name="make_site",
        description="Reads metadata and metrics, and writes the pages that changed.",
        out=dg.Out(dg.Nothing),
    )
    def make(context: dg.OpExecutionContext) -> None:
        site = make_site(source, read_settings(), context.instance, datetime.now(UTC))
        context.log.info(
            f"Site {site.place}: files written: {site.written}, unchanged: {site.unchanged},"
            f" removed: {site.removed}."
        )

    @dg.job(
        name=JOB,
        description="Makes the static site, like `lakehouse docs`, without Spark.",
    )
    def make_docs() -> None:
        make()

    @dg.sensor(
        name=SENSOR,
        job_name=JOB,
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Requests the site after runs and once an hour, if LAKEHOUSE_DOCS is set.",
    )
    def docs_after_runs(
        context: dg.SensorEvaluationContext,
    ) -> dg.RunRequest | dg.SkipReason:
        if not read_settings().docs:
            return dg.SkipReason("LAKEHOUSE_DOCS is not set.")
        working = dg.RunsFilter(job_name=JOB, statuses=UNFINISHED)
        if context.instance.get_run_records(working, limit=1):
            return dg.SkipReason("The site is being made.")
        until = datetime.now(UTC) - _SETTLES
        if not _is_due(context.instance, context.cursor, until):
            return dg.SkipReason("No run has finished since the last request.")
        context.update_cursor(until.isoformat())
        return dg.RunRequest()

    return dg.Definitions(jobs=[make_docs], sensors=[docs_after_runs])


def _is_due(instance: dg.DagsterInstance, cursor: str | None, until: datetime) -> bool:
    """Return whether a run finished between the last request and `until`."""
    if not cursor:
        return True
    since = datetime.fromisoformat(cursor)
    if until - since >= _LONGEST_AGE:
        return True
    changed = dg.RunsFilter(statuses=_FINISHED, updated_after=since)
    # A new tag changes a finished run too.
    return any(
        record.dagster_run.job_name != JOB
        and since.timestamp() < (record.end_time or 0) <= until.timestamp()
        for record in instance.get_run_records(changed)
    )
