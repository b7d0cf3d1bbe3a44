"""The site made: read, written to pages, and put to its place."""

from datetime import datetime

import dagster as dg

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse.site.destination import open_destination
from lakehouse.site.pages import make_pages
from lakehouse.site.publish_site import PublishedSite, publish_site
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
    """Make the site of a lakehouse as of a moment; one process of a home at a time.

    :param out: a folder or `s3://bucket/prefix`, in place of what the environment says.
    :raises LakehouseError: when another process goes on to make it, or it has no place.
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
