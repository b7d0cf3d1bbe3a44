"""Files passed with `--path`: copied to a temporary inbox and ingested from there."""

import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from errno import ENAMETOOLONG
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.ingestion.archive_names import file_format
from lakehouse.settings import Settings
from lakehouse.spark.processes import HIDDEN_PREFIX
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import PLAIN_TEXT, ObjectStore, PassedOver, StoredObject
from lakehouse.storage.s3 import bucket_and_key, open_bucket
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shell_word, shown

AD_HOC_TAG = f"{HIDDEN_PREFIX}ad_hoc_files"
"""Tag of a run started with `--path`: the folder of the copies."""
NAME_IT = "Give the path of the file itself to ingest it."
"""Next step for entries of a given folder that are skipped."""


@dataclass(frozen=True)
class AdHocStore(ObjectStore):
    """An object store whose inbox is a temporary folder of copies; all other prefixes belong to
    `base`.
    """

    base: ObjectStore
    copies: LocalObjectStore
    inbox: str
    settle_seconds: float = 0.0

    @property
    def poll_seconds(self) -> float:
        return self.base.poll_seconds

    @property
    def object_errors(self) -> tuple[type[Exception], ...]:
        return (*self.copies.object_errors, *self.base.object_errors)

    def objects(self, prefix: str) -> list[StoredObject]:
        return self._of(prefix).objects(prefix)

    def unfinished(self, prefix: str) -> list[StoredObject]:
        return self._of(prefix).unfinished(prefix)

    def is_being_written(self, key: str) -> bool | None:
        return self._of(key).is_being_written(key)

    def occupied(self, prefix: str) -> set[str]:
        return self._of(prefix).occupied(prefix)

    def stat(self, key: str) -> StoredObject | None:
        return self._of(key).stat(key)

    def open(self, key: str) -> BinaryIO:
        return self._of(key).open(key)

    def move(self, seen: StoredObject, key: str) -> bool:
        """Move a copy into the base store under another key."""
        if self.base.exists(key):
            raise FileExistsError(f"{self.base.uri(key)} exists already")
        if self.copies.stat(seen.key) != seen:
            return False
        self.base.put(self.copies.root / seen.key, key)
        return self.copies.remove(seen)

    def remove(self, seen: StoredObject) -> bool:
        return self.copies.remove(seen)

    def put(self, source: Path, key: str) -> None:
        self.base.put(source, key)

    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        return self._of(seen.key).exchange(seen, source)

    def remains(self, prefix: str) -> list[StoredObject]:
        return self.base.remains(prefix)

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:
        self.base.write_text(key, text, content_type)

    def remove_folder(self, prefix: str) -> None:
        self.base.remove_folder(prefix)

    def uri(self, key: str) -> str:
        return self.base.uri(key)

    def spark_uri(self, key: str) -> str:
        return self.base.spark_uri(key)

    def _of(self, key: str) -> ObjectStore:
        return self.copies if key.startswith(self.inbox) else self.base


@contextmanager
def copy_ad_hoc_files(settings: Settings, feed: Feed, path: str) -> Iterator[Path]:
    """Copy the files at a path into a temporary folder; the originals do not change.

    In a folder, only files in one of the feed's formats are copied. A file given by its own
    path is always copied.

    :param path: a file, a folder, an `s3://`, `https://` or `file://` address, or a key in the
        deployment's bucket.
    :raises UsageError: if the path is empty or contains no file.
    """
    if _is_empty(path):
        raise UsageError(
            f"--path is {path!r}, which is empty; expected a file, a folder or an address.",
            next_step=(
                "Use '.' for the working directory, or omit --path to ingest the inbox."
            ),
        )
    settings.make_home()
    with TemporaryDirectory(prefix=".ad-hoc-", dir=settings.home) as name:
        inbox = Path(name) / feed.inbox
        inbox.mkdir(parents=True)
        _copy(settings, feed, path, inbox)
        if not LocalObjectStore(Path(name)).objects(feed.inbox):
            raise UsageError(
                f"There is no file at {path!r} for the feed {feed.name}; expected one, or a"
                " folder or an address with files in its formats:"
                f" {', '.join(f'.{end}' for end in feed.formats)}.",
                next_step=(
                    "Links in a folder are skipped; give the path of one to ingest it. Rename"
                    " hidden and unfinished files."
                ),
            )
        yield Path(name)


def list_passed_over(feed: Feed, path: str) -> list[PassedOver]:
    """Return the entries of a given folder that are skipped: links and unreadable entries."""
    folder = _local(path).resolve()
    if not path.strip() or not folder.is_dir() or not folder.name:
        return []
    entries = LocalObjectStore(folder.parent).passed_over(f"{folder.name}/")
    return [
        replace(entry, key=str(folder.parent / entry.key))
        for entry in entries
        if file_format(feed, entry.key) or (folder.parent / entry.key).is_dir()
    ]


def require_copies(feed: Feed, folder: str, path: str) -> None:
    """Raise if a command deleted the copies of its files: a run that the UI re-executes has its
    tags.
    """
    if not Path(folder).is_dir():
        raise UsageError(
            f"The copies of {path or 'the files'} were deleted when the command that made them"
            " exited; expected them for this run.",
            next_step=(
                f"Run `lakehouse ingest {feed.name} --path"
                f" {shell_word(path) if path else '…'}` again; files that landed already are"
                " skipped."
            ),
        )


def select_store(base: ObjectStore, feed: Feed, folder: str | None) -> ObjectStore:
    """Return the store that a run collects files from: the copies if `--path` was given."""
    if folder is None:
        return base
    return AdHocStore(base, LocalObjectStore(Path(folder), settle_seconds=0), feed.inbox)


def _is_empty(path: str) -> bool:
    """Return whether a path would resolve to the working directory or the entire bucket."""
    if in_bucket := bucket_and_key(path.strip()):
        return not in_bucket[0]
    address = urllib.parse.urlsplit(path.strip())
    return not path.strip() or (address.scheme == "file" and not address.path)


def _local(path: str) -> Path:
    address = urllib.parse.urlsplit(path)
    return Path(
        urllib.request.url2pathname(address.path) if address.scheme == "file" else path
    ).expanduser()


def _copy(settings: Settings, feed: Feed, path: str, inbox: Path) -> None:
    address = urllib.parse.urlsplit(path)
    local = _local(path)
    if in_bucket := bucket_and_key(path):
        bucket, key = in_bucket
        _copy_objects(open_bucket(replace(settings, bucket=bucket)), feed, key, inbox)
    elif address.scheme in ("http", "https"):
        name = PurePosixPath(urllib.parse.unquote(address.path)).name or "file"
        _download(path, inbox / name)
    elif local.is_file():
        shutil.copy2(local, inbox / local.name)
    elif local.is_dir():
        folder = local.resolve()
        _copy_objects(LocalObjectStore(folder.parent), feed, f"{folder.name}/", inbox)
    elif settings.deployment == "aws":
        _copy_objects(open_bucket(settings), feed, path, inbox)


def _copy_objects(store: ObjectStore, feed: Feed, key: str, inbox: Path) -> None:
    """Copy the object of a key, or the feed's files below it."""
    named = store.stat(key) if key and not key.endswith("/") else None
    if named:
        _copy_object(store, named, inbox, PurePosixPath(key).name)
        return
    prefix = f"{key.rstrip('/')}/" if key else ""
    for item in store.objects(prefix):
        if file_format(feed, item.key):
            _copy_object(store, item, inbox, item.key.removeprefix(prefix))


def _copy_object(store: ObjectStore, item: StoredObject, inbox: Path, name: str) -> None:
    target = Path(os.path.normpath(f"{inbox}/{name}"))
    if inbox not in target.parents:
        raise _unfit(store.uri(item.key), "it leads out of the inbox")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with store.open(item.key) as content, target.open("xb") as copy:
            shutil.copyfileobj(content, copy)
    except (FileExistsError, NotADirectoryError) as error:
        problem = "another file would have the same name, or be its folder"
        raise _unfit(store.uri(item.key), problem) from error
    except OSError as error:
        if error.errno != ENAMETOOLONG:
            raise
        raise _unfit(store.uri(item.key), "it is too long for a file") from error
    modified_seconds = item.modified_at.timestamp()
    os.utime(target, (modified_seconds, modified_seconds))


def _unfit(source: str, problem: str) -> UsageError:
    return UsageError(
        f"{shown(source)} cannot be copied to the inbox by its name: {problem}.",
        next_step="Copy it under another name, or give the paths of the other files.",
    )


def _download(address: str, target: Path) -> None:
    try:
        # `_copy` passes only http and https.
        with urllib.request.urlopen(address) as response, target.open("wb") as copy:  # noqa: S310
            shutil.copyfileobj(response, copy)
            modified = response.headers.get("Last-Modified")
            # Reading in blocks does not raise if the connection closes early.
            if response.length:
                raise OSError(f"the connection closed {response.length:,} bytes before the end")
    except (OSError, HTTPException) as error:
        raise LakehouseError(
            f"{address} was not read: {error}.", next_step="Nothing was ingested."
        ) from error
    if modified:
        modified_seconds = parsedate_to_datetime(modified).timestamp()
        os.utime(target, (modified_seconds, modified_seconds))
