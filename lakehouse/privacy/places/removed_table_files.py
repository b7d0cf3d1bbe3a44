"""What a bucket that keeps versions has of files of tables that were removed.

Iceberg and Spark delete as if nothing was kept: what they removed is a noncurrent version below a
marker, which has the people still, and which the verifier reads.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakehouse.iceberg.erasure.remove_unnamed import named_by_any
from lakehouse.iceberg.metadata.location_files import folder_key, is_in_a_bucket
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.tables.table import IcebergTable


def remove_versions_of_removed(
    erasable: Erasable, tables: Iterable[IcebergTable]
) -> Iterator[ScrubbedPlace]:
    """Remove for good what buckets keep of removed files in the locations of some tables.

    A file that the metadata of any table names stays: it was removed by mistake, and its version
    is all that there is of it.

    :raises LakehouseError: when S3 refuses to delete a version.
    """
    if erasable.settings.deployment != "aws":
        return
    from lakehouse.storage.s3 import open_bucket

    engine, own = erasable.engine.within(erasable.tables), open_bucket(erasable.settings)
    named: frozenset[str] | None = None
    for table in tables:
        location = engine.catalog.load(table.name).location()
        if not is_in_a_bucket(location):
            continue
        bucket, _, prefix = folder_key(location).partition("/")
        store = replace(own, bucket=bucket)
        versions = store.versions_of_removed(prefix)
        if versions and named is None:
            # It takes the manifests of all tables.
            named = named_by_any(engine)
        unnamed = [one for one in versions if f"{bucket}/{one.key}" not in (named or ())]
        if unnamed:
            store.remove_versions(unnamed)
            yield ScrubbedPlace(location, "removed", files=len({one.key for one in unnamed}))
