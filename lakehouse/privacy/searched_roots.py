"""Where a deployment keeps the files of its tables: below its home, in its bucket, and where a
declaration puts them, or put them before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lakehouse.iceberg.metadata.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.location_files import folder_key, is_in_a_bucket, path_key
from lakehouse.iceberg.metadata.table_folders import outermost, table_folders
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.verifier.roots import BucketRoot, FolderRoot, Root
from lakehouse.settings import Settings

Folders = Mapping[str, Sequence[str]]
"""By table, where its files are."""


def folders_of_holders(erasable: Erasable, known: Folders) -> dict[str, Sequence[str]]:
    """Return where the files are of each table that may hold people; none of one that is not
    there, unless it was.

    :param known: what is known of it from before, when metadata named files that it names no more.
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
    """Return those folders that are in no table's location, as a report has them: what no table
    names there may be another home's, and nothing removes it.

    :param folders: of tables that may hold people.
    """
    catalog, others = erasable.engine.catalog, []
    for table, of_table in folders.items():
        location = catalog.load(table).location() if catalog.has(table) else None
        for folder in of_table:
            if location is None or not folder_key(folder).startswith(folder_key(location)):
                key = path_key(folder).rstrip("/")
                others.append(f"s3://{key}" if is_in_a_bucket(folder) else key)
    return sorted(set(others))


def searched_roots(erasable: Erasable, folders: Folders) -> Iterator[Root]:
    """Yield all that has to be searched for a person.

    :param folders: of tables that may hold people.
    """
    settings = erasable.settings
    every = outermost(folder for of_table in folders.values() for folder in of_table)
    yield FolderRoot(settings.home)
    if settings.deployment == "aws":
        from lakehouse.storage.s3 import open_bucket

        store = open_bucket(settings)
        yield BucketRoot(store.client, store.bucket)
        for bucket, key in _keys_elsewhere(settings, every):
            yield BucketRoot(store.client, bucket, below=f"{key}/" if key else "")
    for folder in _folders_elsewhere(settings, every):
        if folder.is_dir():
            yield FolderRoot(Path("/"), below=folder.relative_to("/").as_posix())


def folders_below_roots(settings: Settings, table: str, folders: Iterable[str]) -> list[str]:
    """Return where the files of a table are, below the root that they are found from: its
    folders, and where each catalog would put it, since a table that was dropped has files too.
    """
    namespace, _, name = table.partition(".")
    usual = [f"warehouse/{namespace}/{name}", f"warehouse/{namespace}.db/{name}"]
    return [*usual, *(_below_its_root(settings, folder) for folder in folders)]


def _below_its_root(settings: Settings, location: str) -> str:
    key = path_key(location)
    if is_in_a_bucket(location):
        return key.partition("/")[2]
    folder = Path(key)
    if folder.is_relative_to(settings.home):
        return folder.relative_to(settings.home).as_posix()
    return folder.relative_to("/").as_posix()


def _keys_elsewhere(settings: Settings, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield folders in other buckets than the deployment's, as bucket and key."""
    for location in filter(is_in_a_bucket, folders):
        bucket, _, key = path_key(location).rstrip("/").partition("/")
        if bucket != settings.bucket:
            yield bucket, key


def _folders_elsewhere(settings: Settings, folders: Iterable[str]) -> Iterator[Path]:
    """Yield folders outside of the home."""
    for location in folders:
        folder = Path(path_key(location))
        if not is_in_a_bucket(location) and not folder.is_relative_to(settings.home):
            yield folder
