"""The stored result of an erasure so far: counts, places and hashes, and no value of a person."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from lakehouse.privacy.folder import check_request_id, privacy_folder
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.settings import Settings
from lakehouse.storage.json_files import read_json, write_json


@dataclass(frozen=True, order=True)
class ErasedFile:
    """A delivered file that was rewritten without rows of the people.

    `key` has `[erased]` for a value of a person; `sha256` is the hash of the delivered content.
    """

    key: str
    sha256: str
    new_sha256: str
    rows: int


@dataclass(frozen=True, order=True)
class UnreadableFile:
    """A delivered file that can still contain the people, and why.

    `key` has `[erased]` for a value of a person.
    """

    key: str
    why: str


@dataclass(frozen=True)
class ErasureRecord:
    """The result of a request so far."""

    erased_at: datetime | None = None
    """When the people were added to the suppression list."""
    hmacs: tuple[str, ...] = ()
    """Keyed hashes of the people's ids, for `erasures verify`."""
    personal_hmacs: tuple[str, ...] = ()
    """Keyed hashes of their personal values that no one else has."""
    unknown: int = 0
    """How many of the named people were not found."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Deleted rows, by table and by branch or tag."""
    snapshots: Mapping[str, int] = field(default_factory=dict)
    """The last snapshot without them, by table."""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Moved tags and dropped branches, by table."""
    files: tuple[ErasedFile, ...] = ()
    unreadable: tuple[UnreadableFile, ...] = ()
    recomputed: tuple[str, ...] = ()
    """Recomputed tables, which aggregated rows of the people."""
    kept: tuple[str, ...] = ()
    """Tables that keep their sums, as declared, or are computed only from such tables."""
    is_recomputed: bool = False
    """Whether all tables of sums are recomputed since rows were last deleted from main."""
    places: tuple[ScrubbedPlace, ...] = ()
    """The last result of each place outside of tables and delivered files."""
    confirmed_places: tuple[str, ...] = ()
    """Places outside of the lakehouse that are confirmed as done, until more rows are deleted."""
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Current and former folders of tables."""
    pending_removals: tuple[str, ...] = ()
    """What could not be removed from files yet, and why."""

    @property
    def row_count(self) -> int:
        """The number of deleted rows in all tables, branches and tags."""
        return sum(sum(by_ref.values()) for by_ref in self.rows.values())

    @property
    def external_places(self) -> tuple[ScrubbedPlace, ...]:
        """Places outside of the lakehouse that can contain the people."""
        return tuple(place for place in self.places if is_external(place))

    @property
    def unattended(self) -> tuple[ScrubbedPlace, ...]:
        """Those places that are not confirmed as done."""
        return tuple(
            place for place in self.external_places if place.place not in self.confirmed_places
        )


def is_external(place: ScrubbedPlace) -> bool:
    """Return whether a place is outside of the home, and its owner has to erase the people."""
    return place.outcome == "not reached" and not place.files


def read_record(settings: Settings, request_id: str) -> ErasureRecord:
    """Return the record of a request; empty if there is none."""
    file = _file(settings, request_id)
    if not file.is_file():
        return ErasureRecord()
    record: ErasureRecord = read_json(file, ErasureRecord)
    return record


def write_record(settings: Settings, request_id: str, record: ErasureRecord) -> None:
    """Store the record of a request."""
    privacy_folder(settings)
    file = _file(settings, request_id)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_json(file, record, ErasureRecord, indent=1)


def _file(settings: Settings, request_id: str) -> Path:
    check_request_id(request_id)
    return settings.home / "privacy" / "records" / f"{request_id}.json"
