"""Where the site goes: a folder, or a prefix of a bucket; each page appears whole in both."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lakehouse.errors import UsageError
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.object_store import ObjectStore

_FOR_ALL, _PRIVATE = (0o644, 0o755), (0o600, 0o700)
"""Modes of files and folders."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".yaml": "application/yaml",
}


class Destination(Protocol):
    """Files by their paths in the site, with `/` between the parts."""

    def names(self) -> set[str]:
        """Return what is there; hidden files are not told."""

    def read(self, name: str) -> str | None:
        """Return the text of a file; None where there is none."""

    def write(self, name: str, text: str) -> None:
        """Let a file appear whole, in the place of what was there."""

    def remove(self, name: str) -> None:
        """Remove a file, where it is there."""

    def sweep(self, names: Iterable[str]) -> None:
        """Remove what a killed process left of files that it was writing."""

    def place(self, name: str) -> str:
        """Return where a file is, for people."""


@dataclass(frozen=True)
class SiteFolder:
    """A folder that the site is in, made where there is none.

    Others may read what is made in it, unless it `is_private`, as all of a home is.
    """

    root: Path
    is_private: bool = False

    @property
    def _modes(self) -> tuple[int, int]:
        return _PRIVATE if self.is_private else _FOR_ALL

    def names(self) -> set[str]:
        """Return what is in the folder, and in the folders in it.

        :raises UsageError: when it is a file.
        """
        if self.root.exists() and not self.root.is_dir():
            raise UsageError(
                f"{self.root} is a file; expected a folder for the site, or a place where one"
                " can be made.",
                next_step="Name another one.",
            )
        # Two levels are all that a site has; another folder may be the whole disk.
        paths = [*self.root.glob("*"), *self.root.glob("[!.]*/*")]
        return {
            path.relative_to(self.root).as_posix()
            for path in paths
            if not path.name.startswith(".") and (path.parent != self.root or path.is_file())
        }

    def read(self, name: str) -> str | None:
        """Return the text of a file."""
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def write(self, name: str, text: str) -> None:
        """Write a file beside its place, and rename it.

        :raises UsageError: when it cannot be written there.
        """
        path = self.root / name
        try:
            self._make(path.parent)
            replace_text(path, text, mode=self._modes[0])
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written: {error.strerror or error}; expected a folder for the"
                " site, or a place where one can be made.",
                next_step="Name another one.",
            ) from error

    def _make(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            path.chmod(self._modes[1])

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.root / name).unlink(missing_ok=True)

    def sweep(self, names: Iterable[str]) -> None:
        """Remove the unfinished copies of files, which begin with a dot and their name."""
        for path in map(self.root.joinpath, names):
            if path.parent.is_dir():
                for left in path.parent.glob(f".{path.name}-*"):
                    left.unlink(missing_ok=True)

    def place(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.root / name)


@dataclass(frozen=True)
class SiteBucket:
    """A prefix of a bucket, empty or with `/` at its end."""

    store: ObjectStore
    prefix: str

    def names(self) -> set[str]:
        """Return the objects below the prefix.

        :raises UsageError: when there is no such bucket.
        """
        objects = self.store.objects(self.prefix)
        return {item.key.removeprefix(self.prefix) for item in objects}

    def read(self, name: str) -> str | None:
        """Return the text of an object."""
        try:
            with self.store.open(f"{self.prefix}{name}") as content:
                return content.read().decode()
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """Put an object, which browsers are told the kind of."""
        kind = _TYPES.get(Path(name).suffix, "text/plain; charset=utf-8")
        self.store.write_text(f"{self.prefix}{name}", text, content_type=kind)

    def remove(self, name: str) -> None:
        """Remove an object."""
        seen = self.store.stat(f"{self.prefix}{name}")
        if seen is not None:
            self.store.remove(seen)

    def sweep(self, names: Iterable[str]) -> None:
        """Find nothing: an object appears whole, or not at all."""

    def place(self, name: str) -> str:
        """Return the address of an object."""
        return self.store.uri(f"{self.prefix}{name}")


def open_destination(settings: Settings, out: str | None) -> Destination:
    """Return where the site goes: to what is named, else to what the environment says, else to
    the folder `site` of the home.

    :param out: a folder, or `s3://bucket/prefix`.
    :raises UsageError: when it is another kind of address.
    """
    named = out or settings.docs or str(settings.home / "site")
    scheme, separator, path = named.partition("://")
    if not separator:
        folder = Path(named).expanduser().absolute()
        return SiteFolder(folder, is_private=folder.is_relative_to(settings.home))
    bucket, _, prefix = path.partition("/")
    if scheme != "s3" or not bucket:
        raise UsageError(
            f"{named!r} is no place for the site; expected a folder, or s3://bucket/prefix."
        )
    from lakehouse.storage.s3 import open_bucket

    store = open_bucket(replace(settings, bucket=bucket))
    return SiteBucket(store, f"{prefix.strip('/')}/" if prefix.strip("/") else "")
