"""Staged rows in the bucket: what dead ingests left there is removed, with the versions that the
bucket kept of it, and uploads that were not completed.
"""

from collections.abc import Iterator, Sequence

from lakehouse.errors import TableBusy
from lakehouse.iceberg.write.kept_rows_folder import KEPT_ROWS
from lakehouse.ingestion.ingest import feed_lock
from lakehouse.ingestion.staged_rows import BucketStaging, by_writer, is_left
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.settings import Settings
from lakehouse.storage.object_store import StoredObject

_OF_OTHERS = (
    "An ingest of another host may be reading them; they are taken for left behind when they"
    " are a day old."
)


def remove_staged_in_bucket(
    settings: Settings, bucket: BucketStaging, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Remove the staged rows of this home whose ingest is gone, and those of others that are
    old.
    """
    staged = by_writer(bucket.store.remains("staging/"))
    for (feed_name, writer), items in sorted(staged.items()):
        if feed_name == KEPT_ROWS:
            continue
        if writer == bucket.writer:
            yield _own(settings, bucket, feed_name, items, is_dry=is_dry)
        else:
            yield _of_another(bucket, f"staging/{feed_name}/{writer}", items, is_dry=is_dry)


def _own(
    settings: Settings,
    bucket: BucketStaging,
    feed_name: str,
    items: Sequence[StoredObject],
    *,
    is_dry: bool,
) -> ScrubbedPlace:
    place, files = bucket.own_prefix(feed_name).rstrip("/"), len(items)
    try:
        # In a dry run too it is asked whether the ingest is alive, and nothing more.
        with feed_lock(feed_name, settings.home, wait_seconds=0):
            if not is_dry:
                bucket.remove_left(feed_name)
    except TableBusy as error:
        owner = f"the ingest of {feed_name}"
        return ScrubbedPlace(place, "busy", files=files, why=str(error), owner=owner)
    return ScrubbedPlace(place, "removed", files=files)


def _of_another(
    bucket: BucketStaging, place: str, items: Sequence[StoredObject], *, is_dry: bool
) -> ScrubbedPlace:
    if not all(map(is_left, items)):
        return ScrubbedPlace(place, "busy", files=len(items), why=_OF_OTHERS)
    if not is_dry:
        bucket.remove_old(f"{place}/")
    return ScrubbedPlace(place, "removed", files=len(items))
