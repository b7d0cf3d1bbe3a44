"""Makes the site: reads its content, renders the pages, and publishes them."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import dagster as dg

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.catalog.catalog import Catalog
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
