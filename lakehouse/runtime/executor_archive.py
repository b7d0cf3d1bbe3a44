"""The archive that executors are sent where their Python has no packages: those that are needed,
of the very versions that are installed here, and a `python` that finds them.

The Python itself is that of each worker: one that is copied would need the very system that it
was built for.
"""

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from lakehouse.errors import SetupError
from lakehouse.runtime.archive_launcher import LAUNCHER, PACKAGES, launcher_text
from lakehouse.runtime.archive_manifest import (
    MANIFEST,
    ArchiveManifest,
    read_manifest,
)
from lakehouse.runtime.executor_packages import ALWAYS, installed_packages, runtime_files
from lakehouse.setting_forms import is_in_bucket
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.storage.s3_address import bucket_and_key

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

_DIGITS = 16
_COMMAND = "lakehouse pack-python"


def write_archive(
    settings: Settings, place: str, more: Iterable[str] = ()
) -> tuple[ArchiveManifest, int]:
    """Write an archive to a file, or to an object of S3, in one step, and return what it holds and
    its size in bytes; the same packages give the same bytes.

    :param place: a path, or `s3://bucket/key`.
    :param more: packages that executors need besides, such as what functions of a project import.
    :raises UsageError: when one of these is not installed here.
    :raises SetupError: when what is to be copied is not there.
    """
    asked = [*ALWAYS, *sorted({*map(canonicalize_name, more)} - {*ALWAYS})]
    packages = installed_packages(asked)
    manifest = ArchiveManifest.of(asked, packages)
    content = archive_bytes(manifest, runtime_files(packages))
    if not is_in_bucket(place):
        replace_bytes(Path(place), content, mode=0o644)
        return manifest, len(content)
    with TemporaryDirectory() as folder:
        file = Path(folder, "archive")
        file.write_bytes(content)
        store, key = _bucket_of(settings, place)
        store.put(file, key)
    return manifest, len(content)


def archive_bytes(manifest: ArchiveManifest, files: Mapping[str, Path]) -> bytes:
    """Return an archive of packages by their files, its manifest first; the same ones give the
    same bytes.
    """
    launcher = launcher_text(manifest.python, manifest.platform)
    content = io.BytesIO()
    with (
        gzip.GzipFile(
            filename="", fileobj=content, mode="wb", compresslevel=6, mtime=0
        ) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        _add(archive, MANIFEST, manifest.to_json())
        _add(archive, LAUNCHER, launcher.encode(), mode=0o755)
        for name, file in files.items():
            is_program = file.stat().st_mode & 0o100
            _add(
                archive,
                f"{PACKAGES}/{name}",
                file.read_bytes(),
                mode=0o755 if is_program else 0o644,
            )
    return content.getvalue()


def require_archive(settings: Settings, place: str) -> ArchiveManifest:
    """Return what an archive holds that is still what would be made here.

    :raises SetupError: when it is missing, cannot be read, is none of ours, or older than what is
        installed here; says what makes it anew.
    """
    with _reading(place):
        manifest = _manifest_at(settings, place)
    if manifest is None:
        raise _not_usable(place, "is none that `lakehouse pack-python` made", _COMMAND)
    if difference := manifest.difference():
        raise _not_usable(place, difference, manifest.command)
    return manifest


def archive_file(settings: Settings) -> Path:
    """Return the archive of the settings as a file of this machine: one of a bucket is fetched to
    the cache, once for each form of it.

    :raises SetupError: when one of a bucket is missing, or cannot be read.
    """
    place = settings.cluster.executor_archive
    assert place
    if not is_in_bucket(place):
        return Path(place)
    with _reading(place):
        store, key = _bucket_of(settings, place)
        stored = store.stat(key)
        if stored is None:
            raise FileNotFoundError(place)
    name = sha256(f"{place}\0{stored.version}".encode()).hexdigest()[:_DIGITS]
    kept = settings.cache_dir.expanduser() / "executors" / f"{name}.tar.gz"
    if not kept.is_file():
        with _reading(place), store.open(key) as opened:
            content = opened.read()
        replace_bytes(kept, content)
    return kept


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Name an archive that cannot be read, with what makes it."""
    try:
        yield
    except FileNotFoundError as error:
        raise _not_usable(place, "is not there", _COMMAND) from error
    except OSError as error:
        raise _not_usable(place, f"cannot be read ({error.strerror})", _COMMAND) from error
    except Exception as error:
        if not is_in_bucket(place) or not _is_of_s3(error):
            raise
        # It refuses a key that is not there too, where keys may not be listed.
        problem = f"is not there or cannot be read ({str(error).rstrip('.')})"
        raise _not_usable(place, problem, _COMMAND) from error


def _is_of_s3(error: Exception) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    return isinstance(error, BotoCoreError | ClientError)


def _not_usable(place: str, problem: str, command: str) -> SetupError:
    return SetupError(
        f"LAKEHOUSE_EXECUTOR_ARCHIVE is {place}, which {problem}.",
        next_step=f"`{command}` makes it anew.",
    )


def _manifest_at(settings: Settings, place: str) -> ArchiveManifest | None:
    if is_in_bucket(place):
        store, key = _bucket_of(settings, place)
        with store.open(key) as content:
            return read_manifest(content)
    with Path(place).open("rb") as file:
        return read_manifest(file)


def _bucket_of(settings: Settings, place: str) -> "tuple[S3ObjectStore, str]":
    from lakehouse.storage.s3 import open_bucket

    address = bucket_and_key(place)
    assert address
    bucket, key = address
    return open_bucket(replace(settings, bucket=bucket)), key


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
