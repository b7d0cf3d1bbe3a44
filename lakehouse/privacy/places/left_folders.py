"""Folders of processes: what dead ones left is removed as a whole, whatever is in it; what living
ones work on goes with them.
"""

import math
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from lakehouse.errors import TableBusy
from lakehouse.iceberg.write.kept_rows_folder import KEPT_ROWS, KeptRowsFolder, list_folders
from lakehouse.ingestion.ingest import feed_lock, remove_staged
from lakehouse.ingestion.staged_rows import open_staging
from lakehouse.privacy.places.jobs_in_bucket import remove_left_of_jobs
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.places.staged_in_bucket import remove_staged_in_bucket
from lakehouse.runtime.code_on_executors import is_code_zip
from lakehouse.runtime.spark_server import with_server
from lakehouse.runtime.temporary_folders import (
    process_of,
    temporary_folder,
    temporary_folders,
)
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store

_AD_HOC = ".ad-hoc-"
_AD_HOC_SECONDS = 3600.0
"""Copies of files that a person named are ingested at once; nothing tells of which process."""
_WITHOUT_ROWS = (".so", ".lck")
_LETS_GO_SECONDS = 10.0
_PAUSE_SECONDS = 0.2


def is_of_a_process(settings: Settings, path: Path) -> bool:
    """Whether a path lies in a folder of some process."""
    parts = path.relative_to(settings.home).parts
    if parts[0] == "tmp":
        return len(parts) > 2 and process_of(settings.home / "tmp" / parts[1]) is not None
    return (len(parts) > 3 and parts[0] == "staging") or parts[0].startswith(_AD_HOC)


def remove_left_folders(
    settings: Settings, gone_at: datetime | None = None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Remove Spark's temporary folders, staged and kept rows and copies of files whose process is
    gone.

    :param gone_at: what a living Spark wrote later than that is without the persons.
    """
    for folder in temporary_folders(settings):
        yield from _temporary(settings, folder, gone_at, is_dry=is_dry)
    for folder in _folders(settings.home / "staging"):
        if folder.name != KEPT_ROWS:
            yield from _staged(settings, folder, is_dry=is_dry)
    if bucket := open_staging(settings):
        yield from remove_staged_in_bucket(settings, bucket, is_dry=is_dry)
        yield from remove_left_of_jobs(bucket.store, is_dry=is_dry)
    for kept in _kept_folders(settings):
        yield from _kept(kept, gone_at, is_dry=is_dry)
    for folder in _folders(settings.home):
        if folder.name.startswith(_AD_HOC):
            yield from _copied(settings, folder, is_dry=is_dry)


def wait_for_spark(settings: Settings, gone_at: datetime, let_go: Callable[[], object]) -> None:
    """Wait until the Spark that this process uses has removed what it spilled before the persons
    were gone; not for long where somebody else still reads of it.

    :param let_go: asks that Spark to; it is not called where there is nothing.
    """
    is_on_server = with_server(settings).spark_remote is not None
    folders = [
        folder
        for folder in temporary_folders(settings)
        if folder == temporary_folder(settings)
        or (is_on_server and folder.name.endswith("-server") and _is_in_use(folder))
    ]
    until = time.monotonic() + _LETS_GO_SECONDS
    while any(_older(folder, gone_at) for folder in folders) and time.monotonic() < until:
        let_go()
        time.sleep(_PAUSE_SECONDS)


def _is_in_use(folder: Path) -> bool:
    process = process_of(folder)
    return process is not None and process.is_alive


def _older(folder: Path, gone_at: datetime | None) -> list[Path]:
    """Return the files with rows that were last written at that moment or before; all where there
    is none.
    """
    latest = gone_at.timestamp() if gone_at else math.inf
    return [file for file in _files_with_rows(folder) if _changed_at(file) <= latest]


def _temporary(
    settings: Settings, folder: Path, gone_at: datetime | None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    process = process_of(folder)
    if process is None:
        return
    if not process.is_alive:
        yield from _removed(settings, folder, _files_with_rows(folder), is_dry=is_dry)
        return
    if older := _older(folder, gone_at):
        yield ScrubbedPlace(
            _name(settings, folder),
            "busy",
            files=len(older),
            why="Spark works in it, and removes it when it ends, or by itself within an hour.",
            owner=f"process {process.pid} on {process.host}",
        )


def _staged(settings: Settings, folder: Path, *, is_dry: bool) -> Iterator[ScrubbedPlace]:
    files = [file for ingest in _folders(folder) for file in _files_with_rows(ingest)]
    if not files:
        return
    try:
        # In a dry run too it is asked whether the ingest is alive, and nothing more.
        with feed_lock(folder.name, settings.home, wait_seconds=0):
            if not is_dry:
                remove_staged(folder)
    except TableBusy as error:
        yield ScrubbedPlace(
            _name(settings, folder),
            "busy",
            files=len(files),
            why=str(error),
            owner=f"the ingest of {folder.name}",
        )
    else:
        yield ScrubbedPlace(_name(settings, folder), "removed", files=len(files))


def _kept_folders(settings: Settings) -> list[KeptRowsFolder]:
    if settings.deployment == "local" and not settings.home.is_dir():
        # No home is made to see that it is empty.
        return []
    return list_folders(open_store(settings), settings.lock_dir)


def _kept(
    folder: KeptRowsFolder, gone_at: datetime | None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    place, files = folder.prefix.rstrip("/"), len(folder.files)
    if not files:
        # A Spark may yet write into it what its client, which is gone, had told it to.
        if not is_dry:
            folder.remove_if_left()
        return
    if folder.is_left and (is_dry or folder.remove_if_left()):
        yield ScrubbedPlace(place, "removed", files=files)
    elif folder.is_left:
        yield ScrubbedPlace(place, "not reached", files=files, why="It cannot be removed.")
    elif gone_at is None or folder.begun_at <= gone_at:
        yield ScrubbedPlace(
            place,
            "busy",
            files=files,
            why=(
                "A write keeps its rows there while it is computed on a cluster; it removes them"
                " when it ends. Of one that was killed on another host, the next write removes"
                " them after seven days. Or they are keys of rows that leave a quarantine, which"
                " the next write of its table takes out."
            ),
            owner="a write",
        )


def _copied(settings: Settings, folder: Path, *, is_dry: bool) -> Iterator[ScrubbedPlace]:
    files = _files_with_rows(folder)
    age_seconds = time.time() - max(map(_changed_at, [folder, *files]))
    if age_seconds > _AD_HOC_SECONDS:
        yield from _removed(settings, folder, files, is_dry=is_dry)
    elif files:
        yield ScrubbedPlace(
            _name(settings, folder),
            "busy",
            files=len(files),
            why=(
                "A `lakehouse ingest --path` may be reading these copies; they are taken for"
                " left behind when they are an hour old."
            ),
        )


def _removed(
    settings: Settings, folder: Path, files: list[Path], *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    if not is_dry:
        shutil.rmtree(folder, ignore_errors=True)
    if not files:
        return
    if not is_dry and folder.exists():
        yield ScrubbedPlace(
            _name(settings, folder),
            "not reached",
            files=len(files),
            why="It cannot be removed.",
        )
        return
    yield ScrubbedPlace(_name(settings, folder), "removed", files=len(files))


def _folders(parent: Path) -> list[Path]:
    if not parent.is_dir():
        return []
    return sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())


def _files_with_rows(folder: Path) -> list[Path]:
    """Return the files that may have rows in them: no libraries that Java unpacked there, and no
    code that was sent to executors.
    """
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and file.suffix not in _WITHOUT_ROWS
        and not is_code_zip(file.name)
        and _size(file)
    ]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _name(settings: Settings, folder: Path) -> str:
    return str(folder.relative_to(settings.home))
