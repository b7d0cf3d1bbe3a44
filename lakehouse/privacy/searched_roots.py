"""Where a deployment keeps the files of its tables: below its home, in its bucket, and where a
declaration puts them.
"""

from collections.abc import Iterator
from pathlib import Path

from lakehouse.iceberg.metadata.location_files import path_key
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.verifier.bucket_root import BucketRoot
from lakehouse.privacy.verifier.roots import FolderRoot, Root
from lakehouse.settings import Settings


def searched_roots(erasable: Erasable) -> Iterator[Root]:
    """Yield all that has to be searched for a person."""
    settings = erasable.settings
    yield FolderRoot(settings.home)
    if settings.deployment == "aws":
        from lakehouse.storage.s3 import open_bucket

        store = open_bucket(settings)
        yield BucketRoot(store.client, store.bucket)
        for bucket, key in sorted(_in_other_buckets(erasable)):
            yield BucketRoot(store.client, bucket, below=f"{key}/")
    for folder in sorted(_in_other_folders(erasable)):
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
    if _is_in_a_bucket(location):
        return key.partition("/")[2]
    folder = Path(key)
    if folder.is_relative_to(settings.home):
        return folder.relative_to(settings.home).as_posix()
    return folder.relative_to("/").as_posix()


def _in_other_buckets(erasable: Erasable) -> set[tuple[str, str]]:
    found = set()
    for location in _locations(erasable):
        bucket, _, key = path_key(location).partition("/")
        if _is_in_a_bucket(location) and bucket != erasable.settings.bucket:
            found.add((bucket, key))
    return found


def _in_other_folders(erasable: Erasable) -> set[Path]:
    folders = set()
    for location in _locations(erasable):
        folder = Path(path_key(location))
        is_elsewhere = not folder.is_relative_to(erasable.settings.home)
        if not _is_in_a_bucket(location) and is_elsewhere:
            folders.add(folder)
    return folders


def _locations(erasable: Erasable) -> Iterator[str]:
    """Yield where the tables are that may hold people."""
    for subject in erasable.subjects:
        for holder in subject.holders:
            location = _location(erasable, holder.table)
            if location:
                yield location


def _is_in_a_bucket(location: str) -> bool:
    return location.startswith(("s3://", "s3a://", "s3n://"))
