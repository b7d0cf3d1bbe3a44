"""Files that a person names, wherever they are: copied beside the inbox, and ingested as if
they had landed there.
"""

import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO
from urllib.error import URLError

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.ingestion.archive_names import file_format
from lakehouse.settings import Settings
from lakehouse.storage.object_store import (
    LocalObjectStore,
    ObjectStore,
    PassedOver,
    StoredObject,
)
from lakehouse.storage.s3 import S3ObjectStore, open_bucket
from lakehouse.tables.feed import Feed

GIVEN_TAG, PATH_TAG = "lakehouse/given", "lakehouse/path"
"""Tags of a run that takes files which a person named: the folder of the copies, and what was
named.
"""
NAME_IT = "Give the path of the file itself to take it."
"""What to do about what stands in a named folder and is passed over."""


@dataclass(frozen=True)
class GivenStore:
    """An object store whose inbox is a folder of copies; what becomes of them goes where it
    always goes.
    """

    base: ObjectStore
    copies: LocalObjectStore
    inbox: str

    @property
    def settle_seconds(self) -> float:
        """The copies are complete."""
        return 0.0

    @property
    def look_seconds(self) -> float:
        """As the store itself."""
        return self.base.look_seconds

    def objects(self, prefix: str) -> list[StoredObject]:
        """Return the copies for the inbox, and what the store has for any other prefix."""
        return self._of(prefix).objects(prefix)

    def passed_over(self, prefix: str) -> list[PassedOver]:
        """Return what is no file among the copies, for the inbox, or in the store."""
        return self._of(prefix).passed_over(prefix)

    def missing(self, prefix: str) -> str | None:
        """Return which folder is not there."""
        return self._of(prefix).missing(prefix)

    def stat(self, key: str) -> StoredObject | None:
        """Return the object as it is now; None where there is none."""
        return self._of(key).stat(key)

    def exists(self, key: str) -> bool:
        """Whether there is an object."""
        return self.stat(key) is not None

    def open(self, key: str) -> BinaryIO:
        """Open an object to read."""
        return self._of(key).open(key)

    def move(self, seen: StoredObject, key: str) -> bool:
        """Put a copy into the store, under another key."""
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
        """Copy a local file into the store."""
        self.base.put(source, key)

    def write_text(self, key: str, text: str) -> None:
        """Write UTF-8 text into the store."""
        self.base.write_text(key, text)

    def uri(self, key: str) -> str:
        """Return where the object is, for people."""
        return self.base.uri(key)

    def _of(self, key: str) -> ObjectStore:
        return self.copies if key.startswith(self.inbox) else self.base


@contextmanager
def copied(settings: Settings, feed: Feed, path: str) -> Iterator[Path]:
    """Copy what a path names into a folder, which is removed at the end; what is copied stays
    as it is.

    Of a folder, files that are of none of the feed's formats are left alone; a file that is
    named is taken in any case.

    :param path: a file or a folder, an `s3://`, `https://` or `file://` address, or a key of
        the deployment's bucket.
    :raises UsageError: when the path is empty, or nothing is there.
    """
    if _is_empty(path):
        raise UsageError(
            f"--path is {path!r}, which names nothing; expected a file, a folder or an"
            " address.",
            next_step=(
                "Say '.' for the working directory, or leave --path out for what waits in the"
                " inbox."
            ),
        )
    settings.make_home()
    with TemporaryDirectory(prefix=".given-", dir=settings.home) as name:
        inbox = Path(name) / feed.inbox
        inbox.mkdir(parents=True)
        _copy(settings, feed, path, inbox)
        if not LocalObjectStore(Path(name)).objects(feed.inbox):
            raise UsageError(
                f"There is no file at {path!r} for the feed {feed.name}; expected one, or a"
                " folder or an address that holds some in its formats:"
                f" {', '.join(f'.{end}' for end in feed.formats)}.",
                next_step=(
                    "Hidden and unfinished files and links do not count; give the path of one"
                    " file to be sure."
                ),
            )
        yield Path(name)


def passed_over_at(feed: Feed, path: str) -> list[PassedOver]:
    """Return what stands in a folder that a person names and is not taken: links, and what
    cannot be read.

    A file or a folder that is named itself is taken, though it is a link.
    """
    folder = _local(path)
    if not path.strip() or not folder.is_dir():
        return []
    return [
        replace(one, key=str(folder / key)) for key, one in _not_taken(feed, folder).items()
    ]


def given_store(base: ObjectStore, feed: Feed, folder: str | None) -> ObjectStore:
    """Return the store that a run takes its files from: where a person named some, those."""
    if folder is None:
        return base
    return GivenStore(base, LocalObjectStore(Path(folder), settle_seconds=0), feed.inbox)


def _is_empty(path: str) -> bool:
    """Whether a path names no place: the working directory would be taken for it, or the whole
    bucket.
    """
    address = urllib.parse.urlsplit(path.strip())
    needed = {"file": address.path, "s3": address.netloc, "s3a": address.netloc}
    return not path.strip() or not needed.get(address.scheme, path)


def _local(path: str) -> Path:
    address = urllib.parse.urlsplit(path)
    return Path(
        urllib.request.url2pathname(address.path) if address.scheme == "file" else path
    ).expanduser()


def _not_taken(feed: Feed, folder: Path) -> dict[str, PassedOver]:
    """Return what is no file, by its path in the folder; of what a feed would take by its name,
    and of folders.
    """
    whole = folder.resolve()
    found = LocalObjectStore(whole.parent).passed_over(f"{whole.name}/") if whole.name else []
    of_folder = {one.key.removeprefix(f"{whole.name}/"): one for one in found}
    return {
        key: one
        for key, one in of_folder.items()
        if file_format(feed, key) or (folder / key).is_dir()
    }


def _copy(settings: Settings, feed: Feed, path: str, inbox: Path) -> None:
    address = urllib.parse.urlsplit(path)
    local = _local(path)
    if address.scheme in ("http", "https"):
        _download(
            path, inbox / (PurePosixPath(urllib.parse.unquote(address.path)).name or "file")
        )
    elif address.scheme in ("s3", "s3a"):
        bucket = open_bucket(replace(settings, bucket=address.netloc))
        _copy_objects(bucket, feed, address.path.removeprefix("/"), inbox)
    elif local.exists():
        _copy_files(feed, local, inbox)
    elif settings.deployment == "aws":
        _copy_objects(open_bucket(settings), feed, path, inbox)


def _copy_files(feed: Feed, path: Path, inbox: Path) -> None:
    is_folder = path.is_dir()
    not_taken = {path / key for key in _not_taken(feed, path)} if is_folder else set()
    for file in sorted(path.rglob("*")) if is_folder else [path]:
        if (
            file.is_file()
            and file not in not_taken
            and (file == path or file_format(feed, file.name))
        ):
            target = inbox / (file.relative_to(path) if path.is_dir() else file.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)


def _copy_objects(bucket: S3ObjectStore, feed: Feed, key: str, inbox: Path) -> None:
    one = bucket.stat(key) if key and not key.endswith("/") else None
    prefix = f"{PurePosixPath(key).parent}/" if one else f"{key.rstrip('/')}/" if key else ""
    found = (item for item in bucket.objects(prefix) if file_format(feed, item.key))
    for item in [one] if one else found:
        target = inbox / (PurePosixPath(key).name if one else item.key.removeprefix(prefix))
        target.parent.mkdir(parents=True, exist_ok=True)
        bucket.client.download_file(bucket.bucket, item.key, str(target))
        moment = item.modified_at.timestamp()
        os.utime(target, (moment, moment))


def _download(address: str, target: Path) -> None:
    try:
        # Only of the schemes that `_copy` lets in.
        with urllib.request.urlopen(address) as found, target.open("wb") as copy:  # noqa: S310
            shutil.copyfileobj(found, copy)
            said = found.headers.get("Last-Modified")
    except URLError as error:
        raise LakehouseError(
            f"{address} was not read: {error}.", next_step="Nothing was ingested."
        ) from error
    if said:
        moment = parsedate_to_datetime(said).timestamp()
        os.utime(target, (moment, moment))
