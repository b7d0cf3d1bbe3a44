"""Folders and objects that processes use for a while: those of dead processes are removed, and
those of living ones are reported.
"""

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from lakehouse.errors import TableBusy
from lakehouse.iceberg.write.kept_rows_folder import KEPT_ROWS, KeptRowsFolder, list_folders
from lakehouse.ingestion.ingest import feed_lock, remove_staged
from lakehouse.ingestion.staged_rows import BucketStaging, by_writer, is_left, open_staging
from lakehouse.orchestration.table_jobs.job_code import RUNS
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.runtime.code_on_executors import is_code_zip
from lakehouse.runtime.spark_server import with_server
from lakehouse.runtime.temporary_folders import (
    process_of,
    temporary_folder,
    temporary_folders,
)
from lakehouse.settings import Settings
from lakehouse.storage.object_store import StoredObject
from lakehouse.storage.stores import open_store

_AD_HOC = ".ad-hoc-"
"""Copies of files that `ingest --path` names."""
_AD_HOC_SECONDS = 3600.0
_WITHOUT_ROWS = (".so", ".lck")
_RELEASE_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
_OF_SPARK = "Spark uses it, and removes it when it ends, or within an hour."
_OF_A_WRITE = (
    "A write on a cluster uses these rows, and removes them when it ends. Those of a write that was"
    " killed on another host are removed after seven days."
)
_OF_A_COPY = "`lakehouse ingest --path` may read these copies; they are removed after an hour."
_OF_ANOTHER_HOST = "An ingest of another host may read them; they are removed after a day."
_OF_A_JOB = "A run of a job of AWS may read it, and removes it; otherwise after a day."


def is_of_a_process(settings: Settings, path: Path) -> bool:
    """Whether a path is in a folder of a process."""
    parts = path.relative_to(settings.home).parts
    if parts[0] == "tmp":
        return len(parts) > 2 and process_of(settings.home / "tmp" / parts[1]) is not None
    return (len(parts) > 3 and parts[0] == "staging") or parts[0].startswith(_AD_HOC)


def remove_left_folders(
    settings: Settings, gone_at: datetime | None = None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Remove temporary folders, staged rows and copies of files of dead processes.

    :param gone_at: what a living process wrote later contains no erased person.
    """
    for folder in temporary_folders(settings):
        yield from _temporary(settings, folder, gone_at, is_dry=is_dry)
    for folder in _folders(settings.home / "staging"):
        files = [file for ingest in _folders(folder) for file in _files_with_rows(ingest)]
        if files and folder.name != KEPT_ROWS:
            place = _name(settings, folder)
            remove = None if is_dry else lambda folder=folder: remove_staged(folder)
            yield _of_feed(settings, folder.name, place, len(files), remove)
    if bucket := open_staging(settings):
        yield from _staged_in_bucket(settings, bucket, is_dry=is_dry)
        yield from _job_runs_in_bucket(bucket, is_dry=is_dry)
    for kept in _kept_folders(settings):
        yield from _kept(kept, gone_at, is_dry=is_dry)
    for folder in _folders(settings.home):
        if folder.name.startswith(_AD_HOC):
            yield from _copied(settings, folder, is_dry=is_dry)


def wait_for_spark(
    settings: Settings, gone_at: datetime, collect_garbage: Callable[[], object]
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
    while any(_older(folder, gone_at) for folder in folders) and time.monotonic() < until:
        collect_garbage()
        time.sleep(_PAUSE_SECONDS)


def _is_in_use(folder: Path) -> bool:
    process = process_of(folder)
    return process is not None and process.is_alive


def _older(folder: Path, gone_at: datetime | None) -> list[Path]:
    """Return the files with rows that were written until a timestamp; all if there is none."""
    latest = gone_at.timestamp() if gone_at else math.inf
    return [file for file in _files_with_rows(folder) if _changed_at(file) <= latest]


def _temporary(
    settings: Settings, folder: Path, gone_at: datetime | None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    process = process_of(folder)
    if process is None:
        return
    if not process.is_alive:
        yield from _removed(settings, folder, is_dry=is_dry)
    elif older := _older(folder, gone_at):
        owner = f"process {process.pid} on {process.host}"
        yield _busy(_name(settings, folder), older, _OF_SPARK, owner)


def _of_feed(
    settings: Settings,
    feed_name: str,
    place: str,
    files: int,
    remove: Callable[[], object] | None,
) -> ScrubbedPlace:
    """Remove staged rows unless the feed is being ingested.

    :param remove: None in a dry run.
    """
    try:
        with feed_lock(feed_name, settings.home, wait_seconds=0):
            if remove:
                remove()
    except TableBusy as error:
        owner = f"the ingest of {feed_name}"
        return ScrubbedPlace(place, "busy", files=files, why=str(error), owner=owner)
    return ScrubbedPlace(place, "removed", files=files)


def _staged_in_bucket(
    settings: Settings, bucket: BucketStaging, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Remove this home's staged rows of dead ingests, and old ones of other homes."""
    staged = by_writer(bucket.store.remains("staging/"))
    for (feed_name, writer), items in sorted(staged.items()):
        place = f"staging/{feed_name}/{writer}"
        if feed_name == KEPT_ROWS:
            continue
        if writer == bucket.writer:
            own = bucket.own_prefix(feed_name).rstrip("/")
            remove = None if is_dry else lambda name=feed_name: bucket.remove_left(name)
            yield _of_feed(settings, feed_name, own, len(items), remove)
        elif not all(map(is_left, items)):
            yield _busy(place, items, _OF_ANOTHER_HOST)
        else:
            if not is_dry:
                bucket.remove_old(f"{place}/")
            yield ScrubbedPlace(place, "removed", files=len(items))


def _job_runs_in_bucket(bucket: BucketStaging, *, is_dry: bool) -> Iterator[ScrubbedPlace]:
    """Remove what runs of tables' jobs left: masking keys, hashes of erased people, and logs."""
    runs: dict[str, list[StoredObject]] = defaultdict(list)
    for version in bucket.store.all_versions(RUNS):
        runs[version.key.removeprefix(RUNS).partition("/")[0]].append(version)
    for run, versions in sorted(runs.items()):
        if not all(map(is_left, versions)):
            yield _busy(f"{RUNS}{run}", versions, _OF_A_JOB, "a job's run")
            continue
        if not is_dry:
            bucket.store.remove_versions(versions)
        yield ScrubbedPlace(f"{RUNS}{run}", "removed", files=len(versions))


def _kept_folders(settings: Settings) -> list[KeptRowsFolder]:
    if settings.deployment == "local" and not settings.home.is_dir():
        return []
    return list_folders(open_store(settings), settings.lock_dir)


def _kept(
    folder: KeptRowsFolder, gone_at: datetime | None, *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    place, files = folder.prefix.rstrip("/"), folder.files
    if not files:
        # A Spark can still write what its client requested before it ended.
        if not is_dry:
            folder.remove_if_left()
    elif folder.is_left and (is_dry or folder.remove_if_left()):
        yield ScrubbedPlace(place, "removed", files=len(files))
    elif folder.is_left:
        why = "It cannot be removed."
        yield ScrubbedPlace(place, "not reached", files=len(files), why=why)
    elif gone_at is None or folder.begun_at <= gone_at:
        yield _busy(place, files, _OF_A_WRITE, "a write")


def _copied(settings: Settings, folder: Path, *, is_dry: bool) -> Iterator[ScrubbedPlace]:
    files = _files_with_rows(folder)
    age_seconds = time.time() - max(map(_changed_at, [folder, *files]))
    if age_seconds > _AD_HOC_SECONDS:
        yield from _removed(settings, folder, is_dry=is_dry)
    elif files:
        yield _busy(_name(settings, folder), files, _OF_A_COPY)


def _removed(settings: Settings, folder: Path, *, is_dry: bool) -> Iterator[ScrubbedPlace]:
    place, files = _name(settings, folder), len(_files_with_rows(folder))
    if not is_dry:
        shutil.rmtree(folder, ignore_errors=True)
    if files and not is_dry and folder.exists():
        why = "It cannot be removed."
        yield ScrubbedPlace(place, "not reached", files=files, why=why)
    elif files:
        yield ScrubbedPlace(place, "removed", files=files)


def _busy(place: str, files: Iterable[object], why: str, owner: str = "") -> ScrubbedPlace:
    return ScrubbedPlace(place, "busy", files=len([*files]), why=why, owner=owner)


def _folders(parent: Path) -> list[Path]:
    if not parent.is_dir():
        return []
    return sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())


def _files_with_rows(folder: Path) -> list[Path]:
    """Return the files that can contain rows: neither libraries nor code for executors."""
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
