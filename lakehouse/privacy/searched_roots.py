"""The folders and buckets that contain the files of tables, including former locations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lakehouse.iceberg.metadata.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.location_files import folder_key, is_in_a_bucket, path_key
from lakehouse.iceberg.metadata.table_folders import outermost, table_folders
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.verifier.roots import BucketRoot, FolderRoot, Root
from lakehouse.settings import Settings

Folders = Mapping[str, Sequence[str]]
"""The folders with files of each table."""


def folders_of_holders(erasable: Erasable, known: Folders) -> dict[str, Sequence[str]]:
    """Return the folders of each table that can contain people.

    :param known: folders from earlier calls, when metadata still referenced files there.
    """
    catalog, folders = erasable.engine.catalog, dict[str, Sequence[str]]()
    for table in sorted({holder.table for one in erasable.subjects for holder in one.holders}):
        now: list[str] = []
        if catalog.has(table):
            with explain_table(table):
                now = table_folders(catalog.load(table))
        folders[table] = outermost([*now, *known.get(table, ())])
    return folders


def folders_of_others(erasable: Erasable, folders: Folders) -> list[str]:
    """Return the folders outside of their table's location, as a report shows them: unreferenced
    files there can belong to another home, and are not removed.
    """
    catalog, others = erasable.engine.catalog, set[str]()
    for table, of_table in folders.items():
        location = folder_key(catalog.load(table).location()) if catalog.has(table) else None
        for folder in of_table:
            if location is None or not folder_key(folder).startswith(location):
                key = path_key(folder).rstrip("/")
                others.add(f"s3://{key}" if is_in_a_bucket(folder) else key)
    return sorted(others)


def searched_roots(erasable: Erasable, folders: Folders) -> Iterator[Root]:
    """Yield all folders and buckets in which a person is searched.

    :param folders: of tables that can contain people.
    """
    settings = erasable.settings
    outer = outermost(folder for of_table in folders.values() for folder in of_table)
    yield FolderRoot(settings.home)
    if settings.deployment == "aws":
        from lakehouse.storage.s3 import open_bucket

        store = open_bucket(settings)
        yield BucketRoot(store.client, store.bucket)
        for folder in filter(is_in_a_bucket, outer):
            bucket, _, key = path_key(folder).rstrip("/").partition("/")
            if bucket != store.bucket:
                yield BucketRoot(store.client, bucket, below=f"{key}/" if key else "")
    for folder in outer:
        path = Path(path_key(folder))
        if is_in_a_bucket(folder) or path.is_relative_to(settings.home):
            continue
        if path.is_dir():
            yield FolderRoot(Path("/"), below=path.relative_to("/").as_posix())


def folders_below_roots(settings: Settings, table: str, folders: Iterable[str]) -> list[str]:
    """Return the folders of a table relative to their root, and its default folders: a dropped
    table has files too.
    """
    namespace, _, name = table.partition(".")
    below = [f"warehouse/{namespace}/{name}", f"warehouse/{namespace}.db/{name}"]
    for folder in folders:
        key = path_key(folder)
        if is_in_a_bucket(folder):
            below.append(key.partition("/")[2])
        else:
            path = Path(key)
            root = settings.home if path.is_relative_to(settings.home) else Path("/")
            below.append(path.relative_to(root).as_posix())
    return below
