"""Rows of `audit.gdpr_actions`: appended without a JVM, each with the hash of the one before, and
verified.

The lock of the table lets one process of a machine append at a time. Of two machines the catalog
lets one commit, and the other computes its rows anew after it, so that the chain never forks. The
last row is also remembered in the home: rows that were taken from the end are missed too.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.write.append_without_spark import append_next
from lakehouse.privacy.folder import check_request_id, privacy_folder
from lakehouse.settings import Settings
from lakehouse.storage.json_files import read_json, write_json
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

Action = Literal[
    "requested",
    "not_found",
    "rows_erased",
    "files_rewritten",
    "places_erased",
    "logically_deleted",
    "pending_physical",
    "physically_deleted",
    "verified",
    "exception",
    "values_destroyed",
    "allowed_again",
]
BEGIN = "0" * 64
"""What stands in place of the hash before the first row."""
_NAME = re.compile(r"[A-Za-z0-9._:/@+-]{1,200}")
_COLUMN = re.compile(r".{1,200}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_HASHED = (
    "sequence",
    "at",
    "action",
    "request",
    "subject",
    "person",
    "who",
    "counts",
    "snapshots",
    "files",
    "run_id",
    "previous_hash",
)


@dataclass(frozen=True)
class AuditedAction:
    """Something that was done; it has no place for a free text.

    :raises UsageError: when a part is not of its form; no value stands in it.
    """

    action: Action
    request_id: str
    who: str
    subject: str | None = None
    person: str | None = None
    """Keyed hash of the person (`person_hmac`)."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By what was counted, such as `silver.orders.rows`."""
    snapshots: Mapping[str, int] = field(default_factory=dict)
    """By table."""
    files: Sequence[str] = ()
    """SHA-256 of files, in hex; a path may hold a name."""

    def __post_init__(self) -> None:
        check_request_id(self.request_id)
        _check("action", [self.action], lambda text: text in get_args(Action))
        _check("who", [self.who], _NAME.fullmatch)
        # The name of a declared column, which may have spaces and letters of any script.
        _check("subject", [self.subject] if self.subject else [], _COLUMN.fullmatch)
        _check("person", [self.person] if self.person else [], _DIGEST.fullmatch)
        _check("counts", self.counts, _NAME.fullmatch)
        _check("snapshots", self.snapshots, _NAME.fullmatch)
        _check("files", self.files, _DIGEST.fullmatch)
        numbers = [*self.counts.values(), *self.snapshots.values()]
        _check("counts and snapshots", numbers, lambda number: isinstance(number, int))


@dataclass(frozen=True)
class ChainReport:
    """What verifying the chain came to."""

    rows: int
    broken_at: int | None = None
    """`sequence` of the first row that is not what was appended; None where all are."""
    why: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether every row is there, as it was appended."""
        return self.broken_at is None

    def __str__(self) -> str:
        rows = f"{self.rows:,} row" + "s" * (self.rows != 1)
        if self.is_whole:
            return f"{rows}, each as it was appended"
        return f"not as it was appended: {self.why}; expected {rows} in a chain from 1"


@dataclass(frozen=True)
class _Head:
    sequence: int
    hash: str


def append_actions(
    settings: Settings,
    engine: Engine,
    table: IcebergTable,
    actions: Sequence[AuditedAction],
    occasion: str,
    *,
    now: datetime | None = None,
) -> int | None:
    """Append what was done to the chain, in one commit; return its snapshot, or None where the
    table has the occasion already.

    :param table: `audit.gdpr_actions`.
    :param occasion: what it is appended for, once, such as a request and its step; a process
        that was killed after it says the same again.
    :raises TableBusy: when another process holds the table for longer than half a minute.
    :raises WriteConflict: when other writers kept winning.
    """
    _check("occasion", [occasion], _NAME.fullmatch)
    at = now or datetime.now(UTC)

    def next_rows(loaded: "Table") -> list[dict[str, Any]]:
        if _has_occasion(loaded, occasion):
            return []
        return _chained(_head(loaded), actions, occasion, at)

    snapshot_id = append_next(engine, table, next_rows, occasion)
    _remember(settings, _head(engine.catalog.load(table.name)))
    return snapshot_id


def verify_chain(settings: Settings, engine: Engine, table: IcebergTable) -> ChainReport:
    """Read the whole chain, and say which row is the first that is not as it was appended."""
    remembered = _remembered(settings)
    rows: list[dict[str, Any]] = []
    if engine.catalog.has(table.name):
        rows = engine.catalog.load(table.name).scan().to_arrow().to_pylist()
    return check_chain(rows, (remembered.sequence, remembered.hash))


def check_chain(rows: Sequence[Mapping[str, Any]], head: tuple[int, str]) -> ChainReport:
    """Compare rows, in whatever order, with what their hashes say.

    :param head: number and hash of a row that was appended, 0 where none was.
    """
    previous, count = BEGIN, len(rows)
    for expected, row in enumerate(sorted(rows, key=lambda one: one["sequence"]), start=1):
        if row["sequence"] != expected:
            found = "there twice" if row["sequence"] < expected else "missing"
            broken = min(row["sequence"], expected)
            return ChainReport(count, broken, f"row {broken} is {found}")
        if row["previous_hash"] != previous:
            return ChainReport(
                count, expected, f"row {expected} does not follow the one before"
            )
        if row["hash"] != row_hash(row):
            return ChainReport(count, expected, f"row {expected} was changed")
        if expected == head[0] and row["hash"] != head[1]:
            return ChainReport(count, expected, f"row {expected} is not the one appended here")
        previous = row["hash"]
    if head[0] > count:
        return ChainReport(count, count + 1, f"row {count + 1} is missing")
    return ChainReport(count)


def row_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of a row: that of the JSON of its values, that of the row before among
    them.
    """
    values = {name: row[name] for name in _HASHED}
    values["at"] = row["at"].astimezone(UTC).isoformat(timespec="microseconds")
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _chained(
    head: _Head, actions: Sequence[AuditedAction], occasion: str, at: datetime
) -> list[dict[str, Any]]:
    rows = []
    sequence, previous = head.sequence, head.hash
    for action in actions:
        sequence += 1
        row = {
            "sequence": sequence,
            "at": at,
            "action": action.action,
            "request": action.request_id,
            "subject": action.subject,
            "person": action.person,
            "who": action.who,
            "counts": _json(dict(action.counts)),
            "snapshots": _json(dict(action.snapshots)),
            "files": _json(list(action.files)),
            "run_id": occasion,
            "previous_hash": previous,
        }
        row["hash"] = previous = row_hash(row)
        rows.append(row)
    return rows


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _has_occasion(loaded: "Table", occasion: str) -> bool:
    from pyiceberg.expressions import EqualTo

    # mypy takes pydantic's fields for the arguments, and not PyIceberg's own constructor.
    of_occasion = EqualTo("run_id", occasion)  # type: ignore[call-arg,arg-type]
    scan = loaded.scan(row_filter=of_occasion, selected_fields=("run_id",), limit=1)
    return scan.to_arrow().num_rows > 0


def _head(loaded: "Table") -> _Head:
    """Return the last row of the chain."""
    rows = loaded.scan(selected_fields=("sequence", "hash")).to_arrow().to_pylist()
    last = max(rows, key=lambda row: row["sequence"], default=None)
    return _Head(last["sequence"], last["hash"]) if last else _Head(0, BEGIN)


def _remember(settings: Settings, head: _Head) -> None:
    """Keep the last row in the home; a later one that is known there stays."""
    if head.sequence > _remembered(settings).sequence:
        write_json(privacy_folder(settings) / "audit_head.json", head, _Head)


def _remembered(settings: Settings) -> _Head:
    file = settings.home / "privacy" / "audit_head.json"
    if not file.is_file():
        return _Head(0, BEGIN)
    head: _Head = read_json(file, _Head)
    return head


def _check(part: str, values: Any, is_form: Callable[[Any], object]) -> None:
    if not all(is_form(value) for value in values):
        raise UsageError(
            f"An audited action has {part} of another form; expected"
            " known actions, names without spaces, whole numbers and SHA-256 in hex, so that no"
            " value of a person can be in it."
        )
