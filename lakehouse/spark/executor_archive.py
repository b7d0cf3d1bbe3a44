"""The archive of Python packages for executors whose Python has none.

Its `bin/python` runs the Python of the worker with the packages.
"""

import gzip
import io
import json
import platform
import shlex
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

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
MANIFEST = "lakehouse-archive.json"
_PACKAGES_FOLDER = "lib"
_COMMAND = "lakehouse pack-python"
_UNUSED_FOLDERS = frozenset({"__pycache__", "tests"})
_UNUSED_SUFFIXES = frozenset(
    {".a", ".c", ".cc", ".cpp", ".h", ".hh", ".hpp", ".pxd", ".pxi", ".pyc", ".pyx"}
)
"""Bytecode, headers, static libraries and sources of extensions."""
_INSTALLER_NOTES = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"})
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


@dataclass(frozen=True)
class ArchiveManifest:
    """The platform and the packages of an archive."""

    python: str
    """The minor version, such as 3.11."""
    platform: str
    """In the format of `uname -sm`, such as `Linux x86_64`."""
    requested: tuple[str, ...]
    """Names of packages; the others are their dependencies."""
    packages: dict[str, str]
    """Versions by name."""

    @classmethod
    def of(cls, requested: Iterable[str]) -> "ArchiveManifest":
        """Return the manifest of an archive that is created in this environment."""
        installed = installed_packages(requested)
        versions = {name: package.version for name, package in installed.items()}
        return cls(python_here(), platform_here(), tuple(requested), versions)

    @property
    def command(self) -> str:
        """The command that creates an archive of the same packages."""
        further = [name for name in self.requested if name not in REQUIRED_PACKAGES]
        return shlex.join([*_COMMAND.split(), *(f"--with={name}" for name in further)])

    def describe(self) -> str:
        """Return the packages and the platform as text."""
        shown = [f"{name} {self.packages[name]}" for name in self.requested]
        dependencies = len(self.packages) - len(shown)
        more = f" and {dependencies} that they require" if dependencies else ""
        return f"{', '.join(shown)}{more}, for Python {self.python} on {self.platform}"


def write_archive(
    settings: Settings, place: str, further: Iterable[str] = ()
) -> tuple[ArchiveManifest, int]:
    """Write an archive atomically, and return its manifest and its size in bytes.

    :param place: a path, or `s3://bucket/key`.
    :param further: packages in addition to `REQUIRED_PACKAGES`.
    :raises UsageError: if one of them is not installed.
    :raises SetupError: if files of a package are missing.
    """
    names = {*map(canonicalize_name, further)} - {*REQUIRED_PACKAGES}
    requested = [*REQUIRED_PACKAGES, *sorted(names)]
    manifest = ArchiveManifest.of(requested)
    content = archive_bytes(manifest, runtime_files(installed_packages(requested)))
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
    """Return an archive with its manifest first; equal packages give equal bytes."""
    launcher = _LAUNCHER_TEXT.format(version=manifest.python, packages=_PACKAGES_FOLDER)
    content = io.BytesIO()
    with (
        gzip.GzipFile(
            filename="", fileobj=content, mode="wb", compresslevel=6, mtime=0
        ) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        _add_file(archive, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
        _add_file(archive, ARCHIVE_PYTHON, launcher.encode(), mode=0o755)
        for name, file in files.items():
            mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            _add_file(archive, f"{_PACKAGES_FOLDER}/{name}", file.read_bytes(), mode=mode)
    return content.getvalue()


def require_archive(settings: Settings, place: str) -> ArchiveManifest:
    """Return the manifest of an archive that equals one created now; raises SetupError."""
    with _naming(place), archive_file(settings, place).open("rb") as opened:
        manifest = read_manifest(opened)
    if manifest is None:
        raise _unusable(place, "was not created by `lakehouse pack-python`")
    try:
        is_current = manifest == ArchiveManifest.of(manifest.requested)
    except UsageError:
        is_current = False
    if not is_current:
        problem = f"has other packages than this environment: {manifest.describe()}"
        raise _unusable(place, problem, manifest.command)
    return manifest


def archive_file(settings: Settings, place: str) -> Path:
    """Return the archive as a local file; one in a bucket is cached; raises SetupError."""
    if not is_in_bucket(place):
        return Path(place)
    with _naming(place):
        store, key = _bucket_of(settings, place)
        stored = store.stat(key)
        if stored is None:
            raise FileNotFoundError(place)
        name = sha256(f"{place}\0{stored.version}".encode()).hexdigest()[:16]
        cached = settings.cache_dir.expanduser() / "executors" / f"{name}.tar.gz"
        if cached.is_file():
            return cached
        with store.open(key) as opened:
            content = opened.read()
    replace_bytes(cached, content)
    return cached


def read_manifest(archive: BinaryIO) -> ArchiveManifest | None:
    """Read the manifest, the first entry of an archive; None if it has none."""
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as entries:
            first = entries.next()
            if first is None or first.name != MANIFEST:
                return None
            content = entries.extractfile(first)
            assert content is not None
            values = json.loads(content.read())
        return ArchiveManifest(**{**values, "requested": tuple(values["requested"])})
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return None


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
    is_note = path.parent.suffix == ".dist-info" and path.name in _INSTALLER_NOTES
    is_unused = path.suffix in _UNUSED_SUFFIXES or not _UNUSED_FOLDERS.isdisjoint(path.parts)
    return not (is_outside or is_note or is_unused)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Raise a SetupError that names the archive if it cannot be read."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (OSError, BotoCoreError, ClientError) as error:
        # Without permission to list keys, S3 also denies access to a missing one.
        problem = f"is missing or cannot be read ({str(error).rstrip('.')})"
        raise _unusable(place, problem) from error


def _unusable(place: str, problem: str, command: str = _COMMAND) -> SetupError:
    return SetupError(
        f"LAKEHOUSE_EXECUTOR_ARCHIVE is {place}, which {problem}.",
        next_step=f"Create it with `{command}`.",
    )


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
