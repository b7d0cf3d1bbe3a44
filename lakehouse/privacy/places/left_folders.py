"""Folders and objects of processes: removed after their exit, otherwise reported."""

import math
import shutil
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lakehouse.errors import TableBusy
from lakehouse.iceberg.write.kept_rows import KEPT_ROWS, KeptRowsFolder, list_folders
from lakehouse.ingestion.feed_lock import feed_lock, remove_staged
from lakehouse.ingestion.staging.staged_rows import by_writer, is_left, open_staging
from lakehouse.orchestration.table_jobs.job_code import RUNS
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.settings import Settings
from lakehouse.spark.project_code import is_code_zip
from lakehouse.spark.spark_folders import (
    process_of,
    temporary_folder,
    temporary_folders,
)
from lakehouse.spark.spark_server import with_server
from lakehouse.storage.object_store import StoredObject
from lakehouse.storage.stores import open_store

_AD_HOC = ".ad-hoc-"
"""Copies of files that `ingest --path` names."""
_AD_HOC_SECONDS = 3600.0
_WITHOUT_ROWS = (".so", ".lck")
_RELEASE_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
_IS_BUSY = (
    "A process or another host can use it, and removes it when it ends. After a kill, it is removed"
    " after an hour (copies of files), a day (staged files, jobs) or a week (writes on a cluster)."
)


def is_of_a_process(settings: Settings, path: Path) -> bool:
    """Whether a path is in a folder of a process."""
    parts = path.relative_to(settings.home).parts
    if parts[0] == "tmp":
        return len(parts) > 2 and process_of(settings.home / "tmp" / parts[1]) is not None
    return (len(parts) > 3 and parts[0] == "staging") or parts[0].startswith(_AD_HOC)


class _Folder(NamedTuple):
    """A folder or prefix that processes use for a while."""

    place: str
    files: int
    remove: Callable[[], object]
    is_busy: bool = False
    """Whether a process can use it."""
    feed: str = ""
    """The feed whose lock is needed to remove it."""


def remove_left_folders(
    settings: Settings, erased_at: datetime | None = None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Remove temporary folders, staged rows and copies of files of dead processes.

    :param erased_at: what a living process wrote after the erasure contains no erased person.
    """
    folders = [
        *_temporary(settings, erased_at),
        *_staged(settings),
        *_in_bucket(settings),
        *_kept(settings, erased_at),
        *_copied(settings),
    ]
    for folder in folders:
        place = _remove(settings, folder, is_dry=is_dry)
        if folder.files:
            yield place


def _remove(settings: Settings, folder: _Folder, *, is_dry: bool) -> ScrubbedPlace:
    name, files = folder.place, folder.files
    if folder.is_busy:
        return ScrubbedPlace(name, "busy", files=files, why=_IS_BUSY)
    feed = folder.feed
    lock = feed_lock(feed, settings.home, wait_seconds=0) if feed else nullcontext()
    try:
        with lock:
            if not is_dry:
                folder.remove()
    except TableBusy as error:
        return ScrubbedPlace(name, "busy", files=files, why=str(error))
    except OSError:
        why = "It cannot be removed."
        return ScrubbedPlace(name, "not reached", files=files, why=why)
    return ScrubbedPlace(name, "removed", files=files)


def _temporary(settings: Settings, erased_at: datetime | None) -> Iterator[_Folder]:
    for folder in temporary_folders(settings):
        process, name = process_of(folder), _name(settings, folder)
        remove = partial(_remove_folder, folder)
        if process is not None and process.is_alive:
            yield _Folder(name, len(_older(folder, erased_at)), remove, is_busy=True)
        elif process is not None:
            yield _Folder(name, len(_files_with_rows(folder)), remove)


def _staged(settings: Settings) -> Iterator[_Folder]:
    for folder in _folders(settings.home / "staging"):
        files = [file for ingest in _folders(folder) for file in _files_with_rows(ingest)]
        if files and folder.name != KEPT_ROWS:
            remove = partial(remove_staged, folder)
            yield _Folder(_name(settings, folder), len(files), remove, feed=folder.name)


def _in_bucket(settings: Settings) -> Iterator[_Folder]:
    """Yield staged rows, and files of runs of tables' jobs: keys, hashes of people, and logs."""
    bucket = open_staging(settings)
    if bucket is None:
        return
    for (feed, writer), items in sorted(by_writer(bucket.store.remains("staging/")).items()):
        place = f"staging/{feed}/{writer}"
        if feed == KEPT_ROWS:
            continue
        if writer == bucket.writer:
            remove = partial(bucket.remove_left, feed)
            yield _Folder(place, len(items), remove, feed=feed)
        else:
            remove = partial(bucket.remove_old, f"{place}/")
            yield _Folder(place, len(items), remove, is_busy=not all(map(is_left, items)))
    runs: dict[str, list[StoredObject]] = defaultdict(list)
    for version in bucket.store.all_versions(RUNS):
        runs[version.key.removeprefix(RUNS).partition("/")[0]].append(version)
    for run, versions in sorted(runs.items()):
        remove = partial(bucket.store.remove_versions, versions)
        is_busy = not all(map(is_left, versions))
        yield _Folder(f"{RUNS}{run}", len(versions), remove, is_busy)


def _kept(settings: Settings, erased_at: datetime | None) -> Iterator[_Folder]:
    if settings.deployment == "local" and not settings.home.is_dir():
        return
    for folder in list_folders(open_store(settings), settings.lock_dir):
        place, files = folder.prefix.rstrip("/"), len(folder.files)
        # One without files too: Spark can still write what its client requested.
        if folder.is_left or not files:
            yield _Folder(place, files, partial(_remove_kept, folder))
        elif erased_at is None or folder.begun_at <= erased_at:
            yield _Folder(place, files, partial(_remove_kept, folder), is_busy=True)


def _copied(settings: Settings) -> Iterator[_Folder]:
    for folder in _folders(settings.home):
        if folder.name.startswith(_AD_HOC):
            files = _files_with_rows(folder)
            try:
                changed_at = max([folder.stat().st_mtime, *files.values()])
            except FileNotFoundError:
                continue
            age_seconds = time.time() - changed_at
            remove, is_busy = partial(_remove_folder, folder), age_seconds <= _AD_HOC_SECONDS
            yield _Folder(_name(settings, folder), len(files), remove, is_busy)


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise OSError


def _remove_kept(folder: KeptRowsFolder) -> None:
    if not folder.remove_if_left() and folder.files:
        raise OSError


def wait_for_spark(
    settings: Settings, erased_at: datetime, collect_garbage: Callable[[], object]
) -> None:
    """Wait up to 10 seconds until the Spark of this process has removed older spilled rows.

    :param collect_garbage: asks Spark to; it is not called if there are none.
    """
    is_on_server = with_server(settings).spark_remote is not None
    folders = [
        folder
        for folder in temporary_folders(settings)
        if folder == temporary_folder(settings)
        or (is_on_server and folder.name.endswith("-server") and _is_in_use(folder))
    ]
    until = time.monotonic() + _RELEASE_SECONDS
    while any(_older(folder, erased_at) for folder in folders) and time.monotonic() < until:
        collect_garbage()
        time.sleep(_PAUSE_SECONDS)


def _is_in_use(folder: Path) -> bool:
    process = process_of(folder)
    return process is not None and process.is_alive


def _older(folder: Path, erased_at: datetime | None) -> list[Path]:
    """Return the files with rows that were written until a timestamp; all if there is none."""
    latest = erased_at.timestamp() if erased_at else math.inf
    return [
        file for file, changed_at in _files_with_rows(folder).items() if changed_at <= latest
    ]


def _folders(parent: Path) -> list[Path]:
    if not parent.is_dir():
        return []
    return sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())


def _files_with_rows(folder: Path) -> dict[Path, float]:
    """Return the files that can contain rows, neither libraries nor code for executors, and when
    each was changed.
    """
    changed_at = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix in _WITHOUT_ROWS or is_code_zip(file.name):
            continue
        with suppress(FileNotFoundError):
            status = file.stat()
            if stat.S_ISREG(status.st_mode) and status.st_size:
                changed_at[file] = status.st_mtime
    return changed_at


def _name(settings: Settings, folder: Path) -> str:
    return str(folder.relative_to(settings.home))
