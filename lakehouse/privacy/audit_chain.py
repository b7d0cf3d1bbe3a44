"""Appends rows to `audit.gdpr_actions`, each with the hash of the previous row, and verifies them.

The table's lock lets one process of a machine append at a time. After a conflicting commit of
another machine, the rows are computed again, so that the chain never forks. The home contains the
hash of the last row, so that rows deleted from the end are detected. No JVM is needed.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
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
"""The previous hash of the first row."""
_HEAD_FILE = "audit_head.json"
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
"""Columns of the hash of a row; another column would make all existing rows look changed."""


@dataclass(frozen=True)
class AuditedAction:
    """An action of an erasure, without free text.

    :raises UsageError: if a part is invalid; it contains no value.
    """

    action: Action
    request_id: str
    who: str
    subject: str | None = None
    person: str | None = None
    """Keyed hash of the person (`person_hmac`)."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By name, such as `silver.orders.rows`."""
    snapshots: Mapping[str, int] = field(default_factory=dict)
    """By table."""
    files: Sequence[str] = ()
    """SHA-256 of files in hex, since a path can contain a name."""

    def __post_init__(self) -> None:
        check_request_id(self.request_id)
        _check("action", [self.action], lambda text: text in get_args(Action))
        _check("who", [self.who], _NAME.fullmatch)
        # A column name can have spaces and letters of any script.
        _check("subject", [self.subject] if self.subject else [], _COLUMN.fullmatch)
        _check("person", [self.person] if self.person else [], _DIGEST.fullmatch)
        _check("counts", self.counts, _NAME.fullmatch)
        _check("snapshots", self.snapshots, _NAME.fullmatch)
        _check("files", self.files, _DIGEST.fullmatch)
        numbers = [*self.counts.values(), *self.snapshots.values()]
        _check("counts and snapshots", numbers, lambda number: isinstance(number, int))


@dataclass(frozen=True)
class ChainReport:
    """The result of verifying the chain."""

    rows: int
    broken_at: int | None = None
    """`sequence` of the first changed or missing row; None if the chain is intact."""

    @property
    def is_whole(self) -> bool:
        """Whether each row exists unchanged."""
        return self.broken_at is None

    def __str__(self) -> str:
        rows = f"{self.rows:,} row" + "s" * (self.rows != 1)
        if self.is_whole:
            return f"{rows}, unchanged"
        return f"changed: row {self.broken_at} is missing, repeated or changed; it has {rows}"


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
    """Append actions to the chain in one commit; return its snapshot, or None if the table
    already contains the occasion.

    :param table: `audit.gdpr_actions`.
    :param occasion: identifies the actions, such as a request and its step: a call after a
        killed one appends them once.
    :raises TableBusy: if another process holds the table for longer than half a minute.
    :raises WriteConflict: if other writers committed first repeatedly.
    """
    _check("occasion", [occasion], _NAME.fullmatch)
    at = now or datetime.now(UTC)

    def next_rows(loaded: "Table") -> list[dict[str, Any]]:
        if _has_occasion(loaded, occasion):
            return []
        return _chained(_head(loaded), actions, occasion, at)

    snapshot_id = append_next(engine, table, next_rows, occasion)
    head = _head(engine.catalog.load(table.name))
    if head.sequence > _remembered(settings).sequence:
        write_json(privacy_folder(settings) / _HEAD_FILE, head, _Head)
    return snapshot_id


def verify_chain(settings: Settings, engine: Engine, table: IcebergTable) -> ChainReport:
    """Read the chain, and return the first changed or missing row."""
    head = _remembered(settings)
    rows: list[dict[str, Any]] = []
    if engine.catalog.has(table.name):
        rows = engine.catalog.load(table.name).scan().to_arrow().to_pylist()
    return check_chain(rows, (head.sequence, head.hash))


def check_chain(rows: Sequence[Mapping[str, Any]], head: tuple[int, str]) -> ChainReport:
    """Verify the hashes of rows, in any order.

    :param head: sequence and hash of the last row that this home appended; 0 if none.
    """
    previous, count = BEGIN, len(rows)
    for expected, row in enumerate(sorted(rows, key=lambda one: one["sequence"]), start=1):
        follows = row["sequence"] == expected and row["previous_hash"] == previous
        is_own = expected != head[0] or row["hash"] == head[1]
        if not (follows and is_own and row["hash"] == row_hash(row)):
            return ChainReport(count, expected)
        previous = row["hash"]
    return ChainReport(count, count + 1 if head[0] > count else None)


def row_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of a row's values as JSON, including the hash of the previous row."""
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
    return loaded.scan(row_filter=of_occasion).count() > 0


def _head(loaded: "Table") -> _Head:
    rows = loaded.scan(selected_fields=("sequence", "hash")).to_arrow().to_pylist()
    last = max(rows, key=lambda row: row["sequence"], default=None)
    return _Head(last["sequence"], last["hash"]) if last else _Head(0, BEGIN)


def _remembered(settings: Settings) -> _Head:
    file = settings.home / "privacy" / _HEAD_FILE
    if not file.is_file():
        return _Head(0, BEGIN)
    head: _Head = read_json(file, _Head)
    return head


def _check(part: str, values: Any, is_valid: Callable[[Any], object]) -> None:
    if not all(is_valid(value) for value in values):
        raise UsageError(
            f"An audited action has invalid {part}; expected known actions, names without spaces,"
            " integers and SHA-256 in hex, so that it contains no value of a person."
        )
