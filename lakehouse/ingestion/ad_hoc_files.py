"""Files passed with `--path`: copied to a temporary inbox and ingested from there."""

import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO
from urllib.error import URLError

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.ingestion.archive_names import file_format
from lakehouse.runtime.run_tags import HIDDEN_PREFIX
from lakehouse.settings import Settings
from lakehouse.storage.object_store import (
    PLAIN_TEXT,
    LocalObjectStore,
    ObjectStore,
    PassedOver,
    StoredObject,
)
from lakehouse.storage.s3 import S3ObjectStore, open_bucket
from lakehouse.storage.s3_address import bucket_and_key
from lakehouse.tables.escaping import shown
from lakehouse.tables.feed import Feed

_LONGEST = 255
"""Maximum bytes in a file or folder name on Linux and macOS."""

AD_HOC_TAG, PATH_TAG = f"{HIDDEN_PREFIX}ad_hoc_files", "lakehouse/path"
"""Tags of a run started with `--path`: the folder of the copies, and the given path."""
NAME_IT = "Give the path of the file itself to ingest it."
"""Next step for entries of a given folder that are skipped."""


@dataclass(frozen=True)
class AdHocStore:
    """An object store whose inbox is a temporary folder of copies; all other prefixes belong to
    `base`.
    """

    base: ObjectStore
    copies: LocalObjectStore
    inbox: str

    @property
    def settle_seconds(self) -> float:
        """The copies are complete, so there is nothing to wait for."""
        return 0.0

    @property
    def poll_seconds(self) -> float:
        """The poll interval of the base store."""
        return self.base.poll_seconds

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """Exceptions of either store that concern one object."""
        return (*self.copies.refusals, *self.base.refusals)

    def objects(self, prefix: str) -> list[StoredObject]:
        """List the copies for the inbox, and the objects of the base store for any other
        prefix.
        """
        return self._of(prefix).objects(prefix)

    def unfinished(self, prefix: str) -> list[StoredObject]:
        """List unfinished files, from the copies for the inbox."""
        return self._of(prefix).unfinished(prefix)

    def passed_over(self, prefix: str) -> list[PassedOver]:
        """List entries that are not files, from the copies for the inbox."""
        return self._of(prefix).passed_over(prefix)

    def is_being_written(self, key: str) -> bool | None:
        """Return whether a process is writing the file."""
        return self._of(key).is_being_written(key)

    def occupied(self, prefix: str) -> set[str]:
        """Return the folders below a prefix that contain anything."""
        return self._of(prefix).occupied(prefix)

    def missing(self, prefix: str) -> str | None:
        """Return the folder if it is missing."""
        return self._of(prefix).missing(prefix)

    def stat(self, key: str) -> StoredObject | None:
        """Return the object's current state, or None if it does not exist."""
        return self._of(key).stat(key)

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        return self.stat(key) is not None

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading."""
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
        """Remove a copy."""
        return self.copies.remove(seen)

    def put(self, source: Path, key: str) -> None:
        """Copy a local file into the base store."""
        self.base.put(source, key)

    def exchange(self, seen: StoredObject, source: Path) -> StoredObject | None:
        """Replace the content of a copy or of an object in the base store."""
        return self._of(seen.key).exchange(seen, source)

    def old_versions(self, prefix: str) -> list[StoredObject]:
        """List old versions in the base store."""
        return self.base.old_versions(prefix)

    def open_old(self, old: StoredObject) -> BinaryIO:
        """Open an old version in the base store."""
        return self.base.open_old(old)

    def remove_old(self, old: StoredObject) -> None:
        """Remove an old version from the base store."""
        self.base.remove_old(old)

    def remains(self, prefix: str) -> list[StoredObject]:
        """List everything that the base store retains."""
        return self.base.remains(prefix)

    def discard_uploads(self, prefix: str) -> list[str]:
        """Abort incomplete uploads in the base store."""
        return self.base.discard_uploads(prefix)

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:
        """Write UTF-8 text into the base store."""
        self.base.write_text(key, text, content_type)

    def remove_folder(self, prefix: str) -> None:
        """Remove everything below a prefix of the base store."""
        self.base.remove_folder(prefix)

    def uri(self, key: str) -> str:
        """Return the object's address for messages."""
        return self.base.uri(key)

    def spark_uri(self, key: str) -> str:
        """Return the address that Spark reads and writes."""
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
                    "Hidden and unfinished files and links are skipped; give the path of one"
                    " file to ingest it."
                ),
            )
        yield Path(name)


def list_passed_over(feed: Feed, path: str) -> list[PassedOver]:
    """Return the entries of a given folder that are skipped: links and unreadable entries.

    A file or folder given by its own path is ingested even if it is a link.
    """
    folder = _local(path)
    if not path.strip() or not folder.is_dir():
        return []
    passed_over = _passed_over(feed, folder).items()
    return [replace(entry, key=str(folder / key)) for key, entry in passed_over]


def require_copies(feed: Feed, folder: str, path: str) -> None:
    """Raise if the copies of the given files were removed. A run that the UI re-executes has
    the tags of the command's run, but the copies are deleted when the command exits.

    :param folder: the folder of the copies.
    :param path: the path that the user gave.
    :raises UsageError: if the folder does not exist.
    """
    if not Path(folder).is_dir():
        raise UsageError(
            f"The copies of {path or 'the files'} were deleted when the command that made them"
            " exited; expected them for this run.",
            next_step=(
                f"Run `lakehouse ingest {feed.name} --path {path or '…'}` again; files that"
                " landed already are skipped."
            ),
        )


def select_store(base: ObjectStore, feed: Feed, folder: str | None) -> ObjectStore:
    """Return the store that a run collects files from: the copies if `--path` was given."""
    if folder is None:
        return base
    return AdHocStore(base, LocalObjectStore(Path(folder), settle_seconds=0), feed.inbox)


def _is_empty(path: str) -> bool:
    """Return whether a path names nothing. It would otherwise resolve to the working directory
    or the entire bucket.
    """
    if in_bucket := bucket_and_key(path.strip()):
        return not in_bucket[0]
    address = urllib.parse.urlsplit(path.strip())
    return not path.strip() or (address.scheme == "file" and not address.path)


def _local(path: str) -> Path:
    address = urllib.parse.urlsplit(path)
    return Path(
        urllib.request.url2pathname(address.path) if address.scheme == "file" else path
    ).expanduser()


def _passed_over(feed: Feed, folder: Path) -> dict[str, PassedOver]:
    """Return skipped entries by their path in the folder: folders, and names in the feed's
    formats.
    """
    resolved = folder.resolve()
    if not resolved.name:
        return {}
    passed_over = {}
    for entry in LocalObjectStore(resolved.parent).passed_over(f"{resolved.name}/"):
        key = entry.key.removeprefix(f"{resolved.name}/")
        if file_format(feed, key) or (folder / key).is_dir():
            passed_over[key] = entry
    return passed_over


def _copy(settings: Settings, feed: Feed, path: str, inbox: Path) -> None:
    if in_bucket := bucket_and_key(path):
        bucket, key = in_bucket
        _copy_objects(open_bucket(replace(settings, bucket=bucket)), feed, key, inbox)
        return
    address = urllib.parse.urlsplit(path)
    local = _local(path)
    if address.scheme in ("http", "https"):
        name = PurePosixPath(urllib.parse.unquote(address.path)).name or "file"
        _require_short(name, path)
        _download(path, inbox / name)
    elif local.exists():
        _copy_files(feed, local, inbox)
    elif settings.deployment == "aws":
        _copy_objects(open_bucket(settings), feed, path, inbox)


def _copy_files(feed: Feed, path: Path, inbox: Path) -> None:
    if not path.is_dir():
        if path.is_file():
            shutil.copy2(path, inbox / path.name)
        return
    passed_over = _passed_over(feed, path)
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        if file.is_file() and str(name) not in passed_over and file_format(feed, file.name):
            target = inbox / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)


def _copy_objects(bucket: S3ObjectStore, feed: Feed, key: str, inbox: Path) -> None:
    named = bucket.stat(key) if key and not key.endswith("/") else None
    if named:
        targets = {PurePosixPath(key).name: named}
    else:
        prefix = f"{key.rstrip('/')}/" if key else ""
        items = [item for item in bucket.objects(prefix) if file_format(feed, item.key)]
        targets = {item.key.removeprefix(prefix): item for item in items}
    for target, item in _paths(bucket, inbox, targets).items():
        target.parent.mkdir(parents=True, exist_ok=True)
        bucket.client.download_file(bucket.bucket, item.key, str(target))
        modified_seconds = item.modified_at.timestamp()
        os.utime(target, (modified_seconds, modified_seconds))


def _paths(
    bucket: S3ObjectStore, inbox: Path, targets: Mapping[str, StoredObject]
) -> dict[Path, StoredObject]:
    """Return the local target path of each object, by its name in the inbox.

    :raises UsageError: if a target is outside of the inbox, is duplicated, is too long, or is
        also the folder of another target.
    """
    paths: dict[Path, StoredObject] = {}
    for name, item in targets.items():
        path = Path(os.path.normpath(f"{inbox}/{name}"))
        if inbox not in path.parents:
            raise UsageError(
                f"{shown(bucket.uri(item.key))} has a name that leads out of the inbox; expected"
                " one without '..'.",
                next_step="Copy it under another key, or give the paths of the other files.",
            )
        if path in paths:
            raise UsageError(
                f"{shown(bucket.uri(paths[path].key))} and {shown(bucket.uri(item.key))} would be"
                " one file in the inbox; expected that keys differ by more than empty parts.",
                next_step="Give the path of each file itself, one after the other.",
            )
        _require_short(name, bucket.uri(item.key))
        paths[path] = item
    for path, item in paths.items():
        for folder in path.parents:
            if folder in paths:
                raise UsageError(
                    f"{shown(bucket.uri(paths[folder].key))} would be a file in the inbox, and the"
                    f" folder of {shown(bucket.uri(item.key))}; expected one of them.",
                    next_step="Give the path of each file itself, one after the other.",
                )
    return paths


def _require_short(name: str, source: str) -> None:
    long = next((part for part in name.split("/") if len(os.fsencode(part)) > _LONGEST), None)
    if long is not None:
        raise UsageError(
            f"{shown(source)} has a name of {len(os.fsencode(long))} bytes; expected no part of"
            f" more than {_LONGEST}, which a file can have.",
            next_step="Copy it under a shorter name, or give the paths of the other files.",
        )


def _download(address: str, target: Path) -> None:
    try:
        # `_copy` passes only http and https.
        with urllib.request.urlopen(address) as response, target.open("wb") as copy:  # noqa: S310
            shutil.copyfileobj(response, copy)
            modified = response.headers.get("Last-Modified")
    except URLError as error:
        raise LakehouseError(
            f"{address} was not read: {error}.", next_step="Nothing was ingested."
        ) from error
    if modified:
        modified_seconds = parsedate_to_datetime(modified).timestamp()
        os.utime(target, (modified_seconds, modified_seconds))
