"""The archive of Python packages for executors whose Python has none.

Its `bin/python` runs the Python of the worker with the packages.
"""

import gzip
import io
import json
import platform
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lakehouse.errors import SetupError, UsageError
from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import ARCHIVE_PYTHON
from lakehouse.settings.setting_forms import is_in_bucket
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.storage.s3 import bucket_and_key

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

REQUIRED_PACKAGES = ("boto3", "cramjam", "fastavro", "numpy", "pyarrow")
"""The packages that read delivered files, see `lakehouse.ingestion.staging.executor_task`."""
_PACKAGES_FOLDER = "lib"
_UNUSED_FOLDERS = frozenset({"__pycache__", "tests"})
_LAUNCHER_TEXT = """\
#!/bin/sh
# Created by `lakehouse pack-python`: the Python of this machine, with the packages of the archive.
root=$(CDPATH= cd -- "${{0%/*}}/.." && pwd) || exit 127
python=$(command -v python{version}) || {{
    echo "No python{version} is on the PATH of $(uname -n): LAKEHOUSE_EXECUTOR_ARCHIVE" >&2
    exit 127
}}
# After the value that Spark set: PySpark is that of the executor.
PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}$root/{packages}
export PYTHONPATH
exec "$python" "$@"
"""


def write_archive(
    settings: Settings, place: str, further: Iterable[str] = ()
) -> tuple[dict[str, str], int]:
    """Write an archive atomically, and return the versions of its packages and its size in bytes.

    :param place: a path, or `s3://bucket/key`.
    :param further: packages in addition to `REQUIRED_PACKAGES`.
    :raises UsageError: if one of them is not installed.
    :raises SetupError: if files of a package are missing.
    """
    packages = installed_packages([*REQUIRED_PACKAGES, *further])
    content = archive_bytes(runtime_files(packages))
    if is_in_bucket(place):
        with TemporaryDirectory() as folder:
            file = Path(folder, "archive")
            file.write_bytes(content)
            store, key = _bucket_of(settings, place)
            store.put(file, key)
    else:
        replace_bytes(Path(place), content, mode=0o644)
    return {name: package.version for name, package in packages.items()}, len(content)


def archive_bytes(files: Mapping[str, Path]) -> bytes:
    """Return an archive of files by path below `site-packages`; equal files give equal bytes."""
    launcher = _LAUNCHER_TEXT.format(version=python_here(), packages=_PACKAGES_FOLDER)
    content = io.BytesIO()
    with (
        gzip.GzipFile(
            filename="", fileobj=content, mode="wb", compresslevel=6, mtime=0
        ) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        _add_file(archive, ARCHIVE_PYTHON, launcher.encode(), mode=0o755)
        for name, file in files.items():
            mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            _add_file(archive, f"{_PACKAGES_FOLDER}/{name}", file.read_bytes(), mode=mode)
    return content.getvalue()


def archive_file(settings: Settings, place: str) -> Path:
    """Return the archive as a local file; one in a bucket is cached; raises SetupError."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return _cached(settings, place) if is_in_bucket(place) else _existing(Path(place))
    except (OSError, BotoCoreError, ClientError) as error:
        # Without permission to list keys, S3 also denies access to a missing one.
        raise SetupError(
            f"LAKEHOUSE_EXECUTOR_ARCHIVE is {place}, which is missing or cannot be read"
            f" ({str(error).rstrip('.')}).",
            next_step="Create it with `lakehouse pack-python`.",
        ) from error


def _existing(file: Path) -> Path:
    file.stat()
    return file


def _cached(settings: Settings, place: str) -> Path:
    store, key = _bucket_of(settings, place)
    stored = store.stat(key)
    if stored is None:
        raise FileNotFoundError(place)
    name = sha256(f"{place}\0{stored.version}".encode()).hexdigest()[:16]
    cached = settings.cache_dir.expanduser() / "executors" / f"{name}.tar.gz"
    if not cached.is_file():
        with store.open(key) as opened:
            content = opened.read()
        replace_bytes(cached, content)
    return cached


def installed_packages(requested: Iterable[str]) -> dict[str, Distribution]:
    """Return packages and their dependencies; raises UsageError or SetupError for missing ones."""
    packages: dict[str, Distribution] = {}
    for name in requested:
        try:
            distribution(name)
        except (PackageNotFoundError, ValueError) as error:
            raise UsageError(
                f"The package {name!r} is not installed here; expected one that is, since it is"
                " copied from here.",
                next_step="Correct the name, or install it.",
            ) from error
        _add_package(Requirement(name), packages, set())
    return dict(sorted(packages.items()))


def _add_package(
    requirement: Requirement,
    packages: dict[str, Distribution],
    visited: set[tuple[str, frozenset[str]]],
) -> None:
    name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
    if (name, extras) in visited:
        return
    visited.add((name, extras))
    try:
        packages[name] = distribution(name)
    except PackageNotFoundError as error:
        raise SetupError(
            f"The package {name} is not installed here, and another one requires it.",
            next_step=f"Run `pip install {name}`.",
        ) from error
    for text in packages[name].requires or ():
        required = Requirement(text)
        marker = required.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            _add_package(required, packages, visited)


def runtime_files(packages: Mapping[str, Distribution]) -> dict[str, Path]:
    """Return the files that imports need, by path below `site-packages`; raises SetupError."""
    files: dict[str, Path] = {}
    for name, package in packages.items():
        next_step = f"Run `pip install --force-reinstall {name}`."
        origin = json.loads(package.read_text("direct_url.json") or "{}")
        if package.files is None or origin.get("dir_info", {}).get("editable"):
            raise SetupError(
                f"The package {name} is installed without a list of its files, or in editable"
                " mode (`pip install -e`); expected a copy.",
                next_step=next_step,
            )
        for path in filter(_is_needed, package.files):
            file = Path(str(package.locate_file(str(path))))
            if not file.is_file():
                raise SetupError(
                    f"The package {name} has no {file}, which it lists as its own.",
                    next_step=next_step,
                )
            files[str(path)] = file
    return dict(sorted(files.items()))


def _is_needed(path: PurePosixPath) -> bool:
    # Scripts and manuals of a package are outside of `site-packages`.
    is_outside = path.is_absolute() or ".." in path.parts
    return not is_outside and _UNUSED_FOLDERS.isdisjoint(path.parts)


def _bucket_of(settings: Settings, place: str) -> "tuple[S3ObjectStore, str]":
    from lakehouse.storage.s3 import open_bucket

    address = bucket_and_key(place)
    assert address
    bucket, key = address
    return open_bucket(replace(settings, bucket=bucket)), key


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def python_here() -> str:
    """Return the minor version of this Python."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def platform_here() -> str:
    """Return the output of `uname -sm`."""
    return f"{platform.system()} {platform.machine()}"
