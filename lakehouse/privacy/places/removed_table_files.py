"""What a bucket that keeps versions has of files of tables that were removed.

Iceberg and Spark delete as if nothing was kept: what they removed is a noncurrent version below a
marker, which has the people still, and which the verifier reads.
"""

from collections.abc import Iterator
from dataclasses import replace

from lakehouse.iceberg.erasure.remove_unnamed import named_by_any
from lakehouse.iceberg.metadata.location_files import folder_key, is_in_a_bucket
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.searched_roots import Folders


def remove_versions_of_removed(erasable: Erasable, folders: Folders) -> Iterator[ScrubbedPlace]:
    """Remove for good what buckets keep of removed files of some tables: in their locations, and in
    the deployment's bucket wherever else they had files.

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
        location = engine.catalog.load(table).location()
        for folder in filter(is_in_a_bucket, of_table):
            bucket, _, prefix = folder_key(folder).partition("/")
            if bucket != own.bucket and not folder_key(folder).startswith(folder_key(location)):
                # Where a declaration puts files may be others'.
                continue
            store = replace(own, bucket=bucket)
            versions = store.versions_of_removed(prefix)
            if versions and named is None:
                # It takes the manifests of all tables.
                named = named_by_any(engine)
            unnamed = [one for one in versions if f"{bucket}/{one.key}" not in (named or ())]
            if unnamed:
                store.remove_versions(unnamed)
                yield ScrubbedPlace(folder, "removed", files=len({one.key for one in unnamed}))
