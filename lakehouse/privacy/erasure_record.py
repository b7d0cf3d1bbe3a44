"""What an erasure did and found so far, kept for its next call: counts, places and hashes, and no
value of a person.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from lakehouse.privacy.folder import check_request_id, privacy_folder
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.settings import Settings
from lakehouse.storage.json_files import read_json, write_json


@dataclass(frozen=True)
class ErasedFile:
    """A delivered file that was written again without rows of the people."""

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
    """What a request did so far."""

    erased_at: datetime | None = None
    """Since when the people are on the list of who is gone."""
    hmacs: tuple[str, ...] = ()
    """Keyed hashes of the people's ids, by which `erasures verify` finds them."""
    personal_hmacs: tuple[str, ...] = ()
    """Keyed hashes of their personal values that no one else has."""
    unknown: int = 0
    """How many of those who were named nothing holds."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rows that went, by table, and by branch or tag."""
    snapshots: Mapping[str, int] = field(default_factory=dict)
    """The last snapshot that was written without them, by table."""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tags that point at another snapshot now, or were dropped, by table."""
    files: tuple[ErasedFile, ...] = ()
    unreadable: tuple[UnreadableFile, ...] = ()
    recomputed: tuple[str, ...] = ()
    """Tables that were computed anew, since the people were in their sums."""
    kept: tuple[str, ...] = ()
    """Tables that keep the sums that they had, as declared, or are computed from such alone."""
    main_snapshots: Mapping[str, int] = field(default_factory=dict)
    """The last snapshot of main that was written without them, by table."""
    anew: tuple[str, ...] = ()
    """Tables of sums that need not be looked at again, until rows go from main once more."""
    is_recomputed: bool = False
    """Whether that is all of them."""
    places: tuple[ScrubbedPlace, ...] = ()
    """The last that is known of each place outside of tables and delivered files."""
    seen_to: tuple[str, ...] = ()
    """Places outside of the lakehouse that somebody saw to, until more rows go."""
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Where the files of tables were, by table: those that metadata names no more among them."""
    waiting: tuple[str, ...] = ()
    """What could not be removed from files yet, and why."""

    @property
    def row_count(self) -> int:
        """How many rows went, in all tables, branches and tags."""
        return sum(sum(by_ref.values()) for by_ref in self.rows.values())

    @property
    def elsewhere(self) -> tuple[ScrubbedPlace, ...]:
        """Places outside of the lakehouse that may hold the people."""
        return tuple(place for place in self.places if is_elsewhere(place))

    @property
    def unattended(self) -> tuple[ScrubbedPlace, ...]:
        """Those of them that somebody has yet to see to."""
        return tuple(place for place in self.elsewhere if place.place not in self.seen_to)


def is_elsewhere(place: ScrubbedPlace) -> bool:
    """Whether a place is outside of the home, and somebody else has to see to it."""
    return place.outcome == "not reached" and not place.files


def read_record(settings: Settings, request_id: str) -> ErasureRecord:
    """Return what is recorded of a request; an empty record where nothing is."""
    file = _file(settings, request_id)
    record: ErasureRecord = (
        read_json(file, ErasureRecord) if file.is_file() else ErasureRecord()
    )
    return record


def write_record(settings: Settings, request_id: str, record: ErasureRecord) -> None:
    """Keep what a request did so far."""
    privacy_folder(settings)
    file = _file(settings, request_id)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_json(file, record, ErasureRecord, indent=1)


def _file(settings: Settings, request_id: str) -> Path:
    check_request_id(request_id)
    return settings.home / "privacy" / "records" / f"{request_id}.json"
