"""What a home knows beside its tables, where these are copied: who was erased goes along, and the
rest is named.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

_GONE, _KEY = "gone.json", "hmac.key"
_MASKING_KEY = "masking.key"
_WITH_TABLES = ("warehouse", "catalog.db", "catalog.db-wal", "catalog.db-shm")
_OF_PROCESSES = ("locks", "tmp", "staging", "logs", "left", "dev.json", "dev.lock", "heartbeat")
_DELIVERED = ("inbox", "archive", "rejected")
_LEFT = {
    "inbox": "files that wait to be ingested",
    "archive": "files that bronze has",
    "rejected": "files that were not as declared",
    "dagster": "runs, checks and plots",
    "alerts": "open alerts and mutes",
    "alerts.toml": "where alerts go",
    "alerts.jsonl": "alerts that were told",
    "openlineage.jsonl": "events of OpenLineage",
    "site": "pages, which are made anew",
}


@dataclass(frozen=True)
class LeftBehind:
    """What stays where it is."""

    name: str
    what: str


def check_who_is_gone(source: Settings, target: Settings) -> None:
    """Make sure that both places agree on who was erased, where the target knows of any.

    :raises LakehouseError: when one knows of people that the other does not: their rows would be
        where nobody looks for them.
    """
    if source.home == target.home or not _files(target):
        return
    keys = [_content(settings, _KEY) for settings in (source, target)]
    if _gone(source) == _gone(target) and (keys[0] == keys[1] or not _gone(target)):
        return
    raise LakehouseError(
        f"{target.home}/privacy knows of other erased people than {source.home}/privacy, or has"
        " another key; expected none there, or the same. Nothing was copied.",
        next_step=(
            "Copy to a place where nobody was erased yet; or see that the same people are erased"
            " in both, with the same hmac.key."
        ),
    )


def copy_who_is_gone(source: Settings, target: Settings) -> list[str]:
    """Copy the records of erasures and the keys that the target has not, whole file by whole
    file; return which.
    """
    if source.home == target.home:
        return []
    copied = []
    files = [*_files(source), source.home / _MASKING_KEY]
    for file in filter(Path.is_file, files):
        name = str(file.relative_to(source.home))
        place = target.home / name
        if not place.exists():
            target.make_home()
            # Nobody else may enter what holds a key.
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_bytes(place, file.read_bytes())
            copied.append(name)
    return copied


def left_behind(source: Settings, target: Settings) -> Iterator[LeftBehind]:
    """Yield what stays where it is, of a home and of a bucket."""
    for name in _DELIVERED:
        if source.deployment == "aws":
            yield LeftBehind(f"s3://{source.bucket}/{name}", _LEFT[name])
        elif _holds_something(source.home / name):
            yield LeftBehind(str(source.home / name), _LEFT[name])
    if source.home == target.home or not source.home.is_dir():
        return
    known = (*_WITH_TABLES, *_OF_PROCESSES, *_DELIVERED, "privacy", _MASKING_KEY)
    for path in sorted(source.home.iterdir()):
        is_known = path.name in known or path.name.startswith(".")
        if not is_known and _holds_something(path):
            yield LeftBehind(str(path), _LEFT.get(path.name, "unknown to the lakehouse"))
    for name in _differing(source, target):
        yield LeftBehind(str(source.home / name), "the other place has another")


def _holds_something(path: Path) -> bool:
    if path.is_file():
        return True
    return any(file.is_file() for file in path.rglob("*"))


def _differing(source: Settings, target: Settings) -> Iterator[str]:
    for file in filter(Path.is_file, [*_files(source), source.home / _MASKING_KEY]):
        name = str(file.relative_to(source.home))
        if _bytes(target.home / name) != file.read_bytes():
            yield name


def _files(settings: Settings) -> list[Path]:
    """Return the files that erasure keeps in a home; locks are none."""
    folder = settings.home / "privacy"
    found = sorted(folder.rglob("*")) if folder.is_dir() else []
    return [path for path in found if path.is_file() and not path.name.startswith(".")]


def _gone(settings: Settings) -> set[str]:
    content = _content(settings, _GONE)
    return {person["hmac"] for person in json.loads(content)} if content else set()


def _content(settings: Settings, name: str) -> bytes:
    return _bytes(settings.home / "privacy" / name)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
