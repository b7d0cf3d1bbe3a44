"""What a bucket keeps of files of tables that Iceberg does not see.

Iceberg and Spark delete as if nothing was kept: in a bucket that keeps versions, what they removed
is a noncurrent version below a marker. A write that was killed leaves uploads in parts. Both may
have the people still: the verifier reads the one, and knows that it cannot read the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.remove_unnamed import named_by_any
from lakehouse.iceberg.metadata.location_files import folder_key, is_in_a_bucket
from lakehouse.iceberg.upkeep.remove_orphans import YOUNGEST
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.searched_roots import Folders

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore


def remove_unseen(erasable: Erasable, folders: Folders) -> Iterator[ScrubbedPlace]:
    """Remove for good what buckets keep of removed files of some tables, and abort uploads that are
    a day old: in their locations, and in the deployment's bucket wherever else they had files.

    A file that the metadata of any table names stays: it was removed by mistake, and its version
    is all that there is of it.

    :raises LakehouseError: when S3 refuses to delete a version.
    """
    if erasable.settings.deployment != "aws":
        return
    from lakehouse.storage.s3 import open_bucket

    engine, own = erasable.engine.within(erasable.tables), open_bucket(erasable.settings)
    named: frozenset[str] | None = None
    for table, of_table in folders.items():
        location = folder_key(engine.catalog.load(table).location())
        for folder in filter(is_in_a_bucket, of_table):
            bucket, _, prefix = folder_key(folder).partition("/")
            if bucket != own.bucket and not folder_key(folder).startswith(location):
                # Where a declaration puts files may be others'.
                continue
            store = replace(own, bucket=bucket)
            versions = store.versions_of_removed(prefix)
            if versions and named is None:
                # It takes the manifests of all tables.
                named = named_by_any(engine)
            unnamed = [one for one in versions if f"{bucket}/{one.key}" not in (named or ())]
            store.remove_versions(unnamed)
            keys = {one.key for one in unnamed} | _abort_old_uploads(store, prefix)
            if keys:
                yield ScrubbedPlace(folder, "removed", files=len(keys))


def _abort_old_uploads(store: "S3ObjectStore", prefix: str) -> set[str]:
    """Abort the uploads that no running write is taken to go on with; return their keys."""
    oldest = datetime.now(UTC) - YOUNGEST
    old = [upload for upload in store.uploads(prefix) if upload.modified_at < oldest]
    store.abort_uploads(old)
    return {upload.key for upload in old}
