"""Where files are listed and opened: a folder, or a bucket with all versions of its objects."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_DATABASE_ENDINGS = tuple(
    f"{name}{side}"
    for name in (".db", ".sqlite", ".sqlite3")
    for side in ("", "-wal", "-shm", "-journal")
)
LINK = "a link, not followed"
"""The problem of a link; one that leads out of the searched folder prevents a proof."""


@dataclass(frozen=True)
class RootEntry:
    """A file, or an entry that cannot be read as one."""

    key: str
    """Path below the root, with `/` between its parts."""
    version: str = ""
    """The object version in a versioned bucket."""
    problem: str = ""
    """Why it cannot be read; empty for a file."""
    is_gap: bool = False
    """Whether it can contain unread bytes."""

    @property
    def title(self) -> str:
        """Return its name in a report."""
        return f"{self.key} (version {self.version})" if self.version else self.key


@dataclass(frozen=True)
class FolderRoot:
    """A folder with everything below it; links are reported, and not followed."""

    folder: Path
    below: str = ""
    """The only subfolder that is searched; keys begin with it."""

    @property
    def name(self) -> str:
        """Return the path of the folder that is searched."""
        return str(self.folder / self.below)

    def address(self, title: str) -> str:
        """Return the path of a file."""
        return str(self.folder / title)

    def path(self, entry: RootEntry) -> Path | None:
        """Return the path of a file."""
        return self.folder / entry.key

    def entries(self) -> Iterator[RootEntry]:
        """Yield all entries below the folder.

        :raises FileNotFoundError: when the folder does not exist.
        """
        if not Path(self.name).is_dir():
            raise FileNotFoundError(f"{self.name} is no folder")
        unread: list[RootEntry] = []

        def remember(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                key = Path(error.filename).relative_to(self.folder).as_posix()
                unread.append(RootEntry(key, problem=reason(error), is_gap=True))

        for parent, folders, files in os.walk(self.name, onerror=remember):
            folders.sort()
            links = [name for name in folders if Path(parent, name).is_symlink()]
            for name in sorted([*files, *links]):
                entry = self._entry(Path(parent, name))
                if entry:
                    yield entry
        yield from unread

    def open(self, entry: RootEntry) -> BinaryIO:
        """Open a file; a database by a copy."""
        path = self.folder / entry.key
        if entry.key.endswith(_DATABASE_ENDINGS):
            copied = tempfile.TemporaryFile()  # noqa: SIM115
            copy_by_another_process(path, copied)
            return copied
        # A link or a pipe that replaced the file is not followed or waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(path, flags), "rb", buffering=0)

    def _entry(self, path: Path) -> RootEntry | None:
        key = path.relative_to(self.folder).as_posix()
        try:
            status = path.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            return RootEntry(key, problem=reason(error), is_gap=True)
        if stat.S_ISREG(status.st_mode):
            return RootEntry(key)
        if stat.S_ISLNK(status.st_mode):
            # `resolve` fails for a link to itself.
            target = Path(os.path.realpath(path))
            leads_out = not target.is_relative_to(os.path.realpath(self.name))
            return RootEntry(key, problem=LINK, is_gap=leads_out)
        return RootEntry(key, problem="a pipe, socket or device, which stores no bytes")


def copy_by_another_process(path: Path, target: BinaryIO) -> None:
    """Copy a file that this process can have open as a database.

    A process that closes a file loses its locks on it (https://sqlite.org/howtocorrupt.html).

    :raises OSError: when the file does not exist or cannot be read.
    """
    command = ["cat", "--", str(path)]
    done = subprocess.run(command, stdout=target, stderr=subprocess.DEVNULL, check=False)
    target.seek(0)
    if done.returncode:
        target.close()
        path.lstat()
        raise PermissionError(f"{path.name} could not be read")


def reason(error: OSError) -> str:
    """Return why a file cannot be read, without its name."""
    return (error.strerror or type(error).__name__).lower()


@dataclass(frozen=True)
class BucketRoot:
    """The objects of a bucket, all versions of them, and unfinished uploads."""

    client: "S3Client"
    bucket: str
    below: str = ""
    """The only prefix of keys that is searched."""

    @property
    def name(self) -> str:
        """Return the `s3://` address."""
        return f"s3://{self.bucket}/{self.below}"

    def address(self, title: str) -> str:
        """Return the `s3://` address of an object."""
        return f"s3://{self.bucket}/{title}"

    def path(self, entry: RootEntry) -> None:  # noqa: ARG002
        """Return None: an object has no path."""
        return

    def entries(self) -> Iterator[RootEntry]:
        """Yield all objects, versions and uploads."""
        within: dict[str, Any] = {"Bucket": self.bucket, "Prefix": self.below}
        if self.client.get_bucket_versioning(Bucket=self.bucket).get("Status"):
            for page in self.client.get_paginator("list_object_versions").paginate(**within):
                for item in page.get("Versions", ()):
                    yield RootEntry(item["Key"], item["VersionId"])
        else:
            for objects in self.client.get_paginator("list_objects_v2").paginate(**within):
                for stored in objects.get("Contents", ()):
                    yield RootEntry(stored["Key"])
        for uploads in self.client.get_paginator("list_multipart_uploads").paginate(**within):
            for upload in uploads.get("Uploads", ()):
                problem = "an unfinished upload, whose parts cannot be read"
                yield RootEntry(upload["Key"], problem=problem, is_gap=True)

    def open(self, entry: RootEntry) -> BinaryIO:
        """Open a copy of an object, which can be read from any position."""
        from botocore.exceptions import ClientError

        version: dict[str, Any] = {"VersionId": entry.version} if entry.version else {}
        copied = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=entry.key, **version)
            shutil.copyfileobj(cast(BinaryIO, answer["Body"]), copied)
        except ClientError as error:
            copied.close()
            code = error.response["Error"]["Code"]
            if code in {"404", "NoSuchKey", "NoSuchVersion", "NotFound"}:
                raise FileNotFoundError(entry.key) from error
            # Such as AccessDenied, or InvalidObjectState of an archived object.
            raise OSError(code) from error
        copied.seek(0)
        return copied


Root = FolderRoot | BucketRoot
"""A place that is searched entirely."""
