"""Publishes pages to a folder or a bucket. Every link works at any time, even after a kill."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from lakehouse.errors import UsageError
from lakehouse.site.pages import INDEX
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import PLAIN_TEXT, ObjectStore

LISTING = "site-files.json"
"""The files of the site with their digests; other files are never replaced or removed."""
_UNFINISHED = ""
_PAGE = re.compile(r"(tables/)?[a-z0-9_-][a-z0-9_.-]*\.(html|odcs\.yaml)")
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".yaml": "application/yaml",
}


class PublicFolder(LocalObjectStore):
    """A folder whose files all users of the machine can read."""

    def write_text(self, key: str, text: str, content_type: str = PLAIN_TEXT) -> None:  # noqa: ARG002
        path = self._path(key)
        new_folders = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in new_folders:
            folder.chmod(0o755)
        replace_text(path, text, mode=0o644)


@dataclass(frozen=True)
class PublishedSite:
    """The address of the index, and the numbers of written, unchanged and removed files."""

    place: str
    written: int
    unchanged: int
    removed: int


def publish_site(pages: Mapping[str, str], store: ObjectStore, prefix: str) -> PublishedSite:
    """Write changed pages and remove obsolete ones: first new pages, then pages that link to
    them, the index last, and removals after it.

    :param prefix: the destination in the store, empty or with `/` at its end.
    :raises UsageError: the destination has files, and no site, or cannot be written.
    """
    try:
        return _publish(pages, store, prefix)
    except OSError as error:
        raise UsageError(
            f"{store.uri(prefix)} cannot be written: {error.strerror or error}; expected a"
            " folder.",
            next_step="Name another one.",
        ) from error


def _publish(pages: Mapping[str, str], store: ObjectStore, prefix: str) -> PublishedSite:
    existing = {item.key.removeprefix(prefix): item for item in store.objects(prefix)}
    published = _read_listing(store, prefix) if LISTING in existing else None
    if published is None and existing:
        raise UsageError(
            f"{store.uri(prefix)} has files that are no site of `lakehouse docs`, such as"
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
        unfinished = published | dict.fromkeys(changed, _UNFINISHED)
        _write(store, prefix, LISTING, _listing(unfinished))
        for name in sorted(changed, key=lambda name: (name == INDEX, name in existing, name)):
            _write(store, prefix, name, pages[name])
        for name in obsolete:
            if name in existing:
                store.remove(existing[name])
        _write(store, prefix, LISTING, _listing(digests))
    unchanged = len(pages) - len(changed)
    return PublishedSite(store.uri(f"{prefix}{INDEX}"), len(changed), unchanged, len(obsolete))


def _write(store: ObjectStore, prefix: str, name: str, text: str) -> None:
    content_type = _CONTENT_TYPES[PurePosixPath(name).suffix]
    store.write_text(f"{prefix}{name}", text, content_type=content_type)


def _listing(digests: Mapping[str, str]) -> str:
    listing = {"made_by": "lakehouse docs", "files": dict(sorted(digests.items()))}
    return json.dumps(listing, indent=1) + "\n"


def _read_listing(store: ObjectStore, prefix: str) -> dict[str, str]:
    try:
        with store.open(f"{prefix}{LISTING}") as content:
            files: dict[str, str] = dict(json.loads(content.read())["files"])
    except (ValueError, LookupError, TypeError):
        files = {"": ""}
    # Listed files can be removed, so none may be outside of the site.
    if not all(_PAGE.fullmatch(name) for name in files):
        raise UsageError(
            f"{store.uri(f'{prefix}{LISTING}')} is not what `lakehouse docs` wrote there;"
            " expected its list of the site's files.",
            next_step="Name another place by --out, or remove the site.",
        )
    return files
