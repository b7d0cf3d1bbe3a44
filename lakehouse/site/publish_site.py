"""Publishes pages to a folder or a bucket. Every link works at any time, even after a kill."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.site.pages import INDEX
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.object_store import ObjectStore

LISTING = "site-files.json"
"""The files of the site with their digests; other files are never replaced or removed."""
_UNFINISHED = ""
_PAGE = re.compile(r"(tables/)?[a-z0-9_-][a-z0-9_.-]*\.(html|odcs\.yaml)")
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".yaml": "application/yaml",
}


@dataclass(frozen=True)
class SiteFolder:
    """A folder, which other users can read unless it `is_private`."""

    root: Path
    is_private: bool = False

    def names(self) -> set[str]:
        """Return the files of the two levels that a site has, and folders of the second."""
        paths = [*self.root.glob("*"), *self.root.glob("[!.]*/*")]
        return {
            path.relative_to(self.root).as_posix()
            for path in paths
            if not path.name.startswith(".") and (path.parent != self.root or path.is_file())
        }

    def read(self, name: str) -> str | None:
        """Return the text of a file; None without one."""
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def write(self, name: str, text: str) -> None:
        """Write a file atomically.

        :raises UsageError: it cannot be written.
        """
        path = self.root / name
        file_mode, folder_mode = (0o600, 0o700) if self.is_private else (0o644, 0o755)
        try:
            for folder in reversed(path.parents):
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    folder.chmod(folder_mode)
            replace_text(path, text, mode=file_mode)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written: {error.strerror or error}; expected a folder.",
                next_step="Name another one.",
            ) from error

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.root / name).unlink(missing_ok=True)

    def address(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.root / name)


@dataclass(frozen=True)
class SiteBucket:
    """A prefix of a bucket, empty or with `/` at its end."""

    store: ObjectStore
    prefix: str

    def names(self) -> set[str]:
        """Return the names of the objects below the prefix.

        :raises UsageError: the bucket does not exist.
        """
        objects = self.store.objects(self.prefix)
        return {item.key.removeprefix(self.prefix) for item in objects}

    def read(self, name: str) -> str | None:
        """Return the text of an object; None without one."""
        try:
            with self.store.open(f"{self.prefix}{name}") as content:
                return content.read().decode()
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """Write an object with its content type."""
        content_type = _CONTENT_TYPES[Path(name).suffix]
        self.store.write_text(f"{self.prefix}{name}", text, content_type=content_type)

    def remove(self, name: str) -> None:
        """Remove an object."""
        if seen := self.store.stat(f"{self.prefix}{name}"):
            self.store.remove(seen)

    def address(self, name: str) -> str:
        """Return the address of an object."""
        return self.store.uri(f"{self.prefix}{name}")


@dataclass(frozen=True)
class PublishedSite:
    """The address of the index, and the numbers of written, unchanged and removed files."""

    place: str
    written: int
    unchanged: int
    removed: int


def publish_site(
    pages: Mapping[str, str], destination: SiteFolder | SiteBucket
) -> PublishedSite:
    """Write changed pages and remove obsolete ones: first new pages, then pages that link to
    them, the index last, and removals after it.

    :raises UsageError: the destination has files, and no site.
    """
    existing = destination.names()
    published = _read_listing(destination)
    if published is None and existing:
        raise UsageError(
            f"{destination.address('')} has files that are no site of `lakehouse docs`, such as"
            f" {min(existing)!r}; expected nothing there, or such a site.",
            next_step="Name another place by --out, or move the files away.",
        )
    published = published or {}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pages.items()}
    changed = [
        name
        for name, digest in digests.items()
        if published.get(name) != digest or name not in existing
    ]
    obsolete = sorted(published.keys() - pages.keys())
    if changed or obsolete:
        # First, so that the next call continues after a kill.
        _write_listing(destination, published | dict.fromkeys(changed, _UNFINISHED))
        for name in sorted(changed, key=lambda name: (name == INDEX, name in existing, name)):
            destination.write(name, pages[name])
        for name in obsolete:
            destination.remove(name)
        _write_listing(destination, digests)
    unchanged = len(pages) - len(changed)
    return PublishedSite(destination.address(INDEX), len(changed), unchanged, len(obsolete))


def _read_listing(destination: SiteFolder | SiteBucket) -> dict[str, str] | None:
    text = destination.read(LISTING)
    if text is None:
        return None
    try:
        files: dict[str, str] = dict(json.loads(text)["files"])
    except (ValueError, LookupError, TypeError):
        files = {"": ""}
    # Listed files can be removed, so none may be outside of the site.
    if not all(_PAGE.fullmatch(name) for name in files):
        raise UsageError(
            f"{destination.address(LISTING)} is not what `lakehouse docs` wrote there; expected"
            " its list of the site's files.",
            next_step="Name another place by --out, or remove the site.",
        )
    return files


def _write_listing(destination: SiteFolder | SiteBucket, digests: Mapping[str, str]) -> None:
    listing = {"made_by": "lakehouse docs", "files": dict(sorted(digests.items()))}
    destination.write(LISTING, json.dumps(listing, indent=1) + "\n")
