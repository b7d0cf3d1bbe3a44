"""The job that makes the site, and the schedule that requests it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.settings import Settings
from lakehouse.site.pages import make_pages
from lakehouse.site.publish_site import PublicFolder, PublishedSite, publish_site
from lakehouse.site.read_site import SiteSource, read_site
from lakehouse.storage.file_lock import file_lock
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore

JOB = "make_docs"
SCHEDULE = "docs_every_5_minutes"
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
    store, prefix = open_destination(settings, out)
    settings.make_home()
    busy = LakehouseError(
        f"Another process has been making the site for {_WAIT_SECONDS:.0f} s.",
        next_step="Try it again.",
    )
    with file_lock(settings.lock_dir / "docs.lock", _WAIT_SECONDS, busy):
        facts = read_site(source, settings, Catalog.of(settings), instance, now)
        return publish_site(make_pages(facts), store, prefix)


def open_destination(settings: Settings, out: str | None) -> tuple[ObjectStore, str]:
    """Return the store and the prefix of the destination: the argument, the setting, or `site` of
    the home.

    :raises UsageError: the address is no folder and no bucket.
    """
    place = out or settings.docs or str(settings.home / "site")
    scheme, separator, path = place.partition("://")
    if not separator:
        folder = Path(place).expanduser().resolve()
        is_private = folder.is_relative_to(settings.home.resolve())
        store_type = LocalObjectStore if is_private else PublicFolder
        return store_type(folder.parent), f"{folder.name}/"
    bucket, _, prefix = path.partition("/")
    if scheme != "s3" or not bucket:
        raise UsageError(
            f"{place!r} is no place for the site; expected a folder, or s3://bucket/prefix."
        )
    from lakehouse.storage.s3 import open_bucket

    store = open_bucket(replace(settings, bucket=bucket))
    return store, f"{prefix.strip('/')}/" if prefix.strip("/") else ""


def site_definitions(
    source: SiteSource, read_settings: Callable[[], Settings]
) -> dg.Definitions:
    """Return the job and its schedule, which skips unless the setting names a destination."""

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

    @dg.schedule(
        name=SCHEDULE,
        job=make_docs,
        cron_schedule="*/5 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Requests the site every five minutes, if LAKEHOUSE_DOCS is set.",
    )
    def docs_every_5_minutes(
        context: dg.ScheduleEvaluationContext,
    ) -> dg.RunRequest | dg.SkipReason:
        if not read_settings().docs:
            return dg.SkipReason("LAKEHOUSE_DOCS is not set.")
        unfinished = dg.RunsFilter(job_name=JOB, statuses=UNFINISHED)
        if context.instance.get_run_records(unfinished, limit=1):
            return dg.SkipReason("The site is being made.")
        return dg.RunRequest()

    return dg.Definitions(jobs=[make_docs], schedules=[docs_every_5_minutes])
