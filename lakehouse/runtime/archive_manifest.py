"""What an archive for executors says of itself, in its first file, and whether it is still what
would be made here now.
"""

import json
import platform
import shlex
import sys
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution
from typing import BinaryIO

from lakehouse.errors import UsageError
from lakehouse.runtime.executor_packages import ALWAYS, installed_packages, versions

MANIFEST = "lakehouse-archive.json"
_FORM = 1
_SHOWN = 3


@dataclass(frozen=True)
class ArchiveManifest:
    """Whom the packages of an archive are for, and which they are."""

    python: str
    """The minor version, such as 3.11."""
    platform: str
    """As `uname -sm` has it, such as `Linux x86_64`."""
    asked: tuple[str, ...]
    """The packages that somebody asked for; the others are required by these."""
    packages: dict[str, str]
    """The version of each."""
    form: int = _FORM

    @classmethod
    def of(cls, asked: Sequence[str], packages: dict[str, Distribution]) -> "ArchiveManifest":
        """Return that of an archive of some packages, which is made here."""
        return cls(python_here(), platform_here(), tuple(asked), versions(packages))

    def to_json(self) -> bytes:
        """Write it as the file that it is in the archive."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode() + b"\n"

    @property
    def command(self) -> str:
        """What makes an archive of the same packages anew."""
        more = [name for name in self.asked if name not in ALWAYS]
        return shlex.join(["lakehouse", "pack-python", *(f"--with={name}" for name in more)])

    def describe(self) -> str:
        """Say for people what is in the archive."""
        shown = [f"{name} {self.packages[name]}" for name in self.asked]
        others = len(self.packages) - len(shown)
        more = f" and {others} that they require" if others else ""
        return f"{', '.join(shown)}{more}, for Python {self.python} on {self.platform}"

    def difference(self) -> str:
        """Return in what an archive that is made here now is another one; nothing where in
        nothing.
        """
        if self.python != python_here():
            return f"is for Python {self.python}, and this is {python_here()}"
        if self.platform != platform_here():
            return f"is for {self.platform}, and this is {platform_here()}"
        try:
            here = versions(installed_packages(self.asked))
        except UsageError as error:
            return f"has a package that is not here: {error.args[0].rstrip('.')}"
        others = sorted(
            name
            for name in {*here, *self.packages}
            if here.get(name) != self.packages.get(name)
        )
        told = [
            f"{name} {self.packages.get(name, 'not at all')} (here {here.get(name, 'not')})"
            for name in others[:_SHOWN]
        ]
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return f"has {', '.join(told)}{more}" if told else ""


def read_manifest(archive: BinaryIO) -> ArchiveManifest | None:
    """Read the manifest of an archive, of which no more is read than its beginning; None where it
    is none that the lakehouse made.
    """
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as entries:
            first = entries.next()
            if first is None or first.name != MANIFEST:
                return None
            content = entries.extractfile(first)
            assert content is not None
            said = json.loads(content.read())
        manifest = ArchiveManifest(**{**said, "asked": tuple(said["asked"])})
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return None
    return manifest if manifest.form == _FORM else None


def python_here() -> str:
    """Return the minor version of the Python of this process."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def platform_here() -> str:
    """Return what `uname -sm` says here."""
    return f"{platform.system()} {platform.machine()}"
