"""Where a deployment keeps the files of its tables: below its home, in its bucket, and where a
declaration puts them.
"""

from collections.abc import Iterator
from pathlib import Path

from lakehouse.iceberg.metadata.location_files import is_in_a_bucket, path_key
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.verifier.bucket_root import BucketRoot
from lakehouse.privacy.verifier.roots import FolderRoot, Root
from lakehouse.settings import Settings


def searched_roots(erasable: Erasable) -> Iterator[Root]:
    """Yield all that has to be searched for a person."""
    settings = erasable.settings
    buckets, folders = _elsewhere(erasable)
    yield FolderRoot(settings.home)
    if settings.deployment == "aws":
        from lakehouse.storage.s3 import open_bucket

        store = open_bucket(settings)
        yield BucketRoot(store.client, store.bucket)
        for bucket, key in sorted(buckets):
            yield BucketRoot(store.client, bucket, below=f"{key}/")
    for folder in sorted(folders):
        if folder.is_dir():
            yield FolderRoot(Path("/"), below=folder.relative_to("/").as_posix())


def table_folders(erasable: Erasable, table: str) -> list[str]:
    """Return where the files of a table are, below the root that they are found from: its
    location, and where each catalog would put it, since a table that was dropped has files too.
    """
    namespace, _, name = table.partition(".")
    folders = [f"warehouse/{namespace}/{name}", f"warehouse/{namespace}.db/{name}"]
    location = _location(erasable, table)
    if location:
        folders.append(_below_its_root(erasable.settings, location))
    return folders


def _location(erasable: Erasable, table: str) -> str | None:
    catalog = erasable.engine.catalog
    return catalog.load(table).location() if catalog.has(table) else None


def _below_its_root(settings: Settings, location: str) -> str:
    key = path_key(location)
    if is_in_a_bucket(location):
        return key.partition("/")[2]
    folder = Path(key)
    if folder.is_relative_to(settings.home):
        return folder.relative_to(settings.home).as_posix()
    return folder.relative_to("/").as_posix()


def _elsewhere(erasable: Erasable) -> tuple[set[tuple[str, str]], set[Path]]:
    """Return where the tables are that may hold people, outside of the home and of the bucket:
    other buckets with the keys, and folders.
    """
    settings = erasable.settings
    buckets, folders = set(), set()
    for table in {holder.table for one in erasable.subjects for holder in one.holders}:
        location = _location(erasable, table)
        if location is None:
            continue
        key = path_key(location)
        if is_in_a_bucket(location):
            bucket, _, below = key.partition("/")
            if bucket != settings.bucket:
                buckets.add((bucket, below))
        elif not Path(key).is_relative_to(settings.home):
            folders.add(Path(key))
    return buckets, folders
