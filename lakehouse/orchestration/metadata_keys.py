"""Dagster metadata of runs as typed records: the only module that defines the keys.

Writers use `to_metadata`, readers `from_metadata`. A value of an unexpected type is treated as
absent, since assets of other code can use the same key. Keys are stored with the runs of a
home: do not rename them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, TypeVar

import dagster as dg

from lakehouse.iceberg.rules.column_profile import DISTINCT_COUNT, NULL_FRACTION, ROWS

UNCHANGED = "unchanged"
"""Operation of a write without changes."""
_METRICS = (f"{NULL_FRACTION}.", f"{DISTINCT_COUNT}.")
"""Prefixes of keys that are also metric names."""
T = TypeVar("T")


def plain_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as plain values."""
    return {name: _plain(value) for name, value in metadata.items()}


def sample_table(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Return rows as a Dagster table; values without a JSON form and ids over 2^53 are text."""
    records = [
        dg.TableRecord({name: _cell(value) for name, value in row.items()}) for row in rows
    ]
    columns = [dg.TableColumn(name) for name in (rows[0] if rows else {})]
    return dg.MetadataValue.table(records, schema=dg.TableSchema(columns))


def _cell(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, (str, bool, float)):
        return value
    return value if isinstance(value, int) and abs(value) < 2**53 else str(value)


def _plain(value: Any) -> Any:
    if not isinstance(value, dg.MetadataValue):
        return value
    if not isinstance(value, dg.TableMetadataValue):
        return value.value
    # A record does not preserve the order of its columns.
    names = [column.name for column in value.schema.columns]
    return [{name: record.data.get(name) for name in names} for record in value.records]


def _of(*kinds: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kinds) else None


_text, _count, _number = _of(str), _of(int), _of(int, float)
_asset = _of(dg.AssetKey)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else ()


def _id(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and value.isdigit() else None


def _as_is(value: T) -> T:
    return value


def _stored(
    key: str, read: Callable[[Any], Any], write: Callable[[Any], Any] = _as_is
) -> dict[str, Any]:
    return {"key": key, "read": read, "write": write}


_SCHEMA = _stored("dagster/column_schema", _of(dg.TableSchema))


def _key(
    key: str,
    read: Callable[[Any], Any],
    write: Callable[[Any], Any] = _as_is,
    default: Any = None,
) -> Any:
    return field(default=default, metadata=_stored(key, read, write))


def _snapshot_key(key: str) -> Any:
    """Declare a snapshot id, stored as text since it exceeds the integer range of JSON."""
    return _key(key, _id, str)


def _texts_key(key: str) -> Any:
    return _key(key, _texts, list, default=())


def _mapping_key(key: str) -> Any:
    return field(default_factory=dict, metadata={"key": key, "read": _mapping, "write": _as_is})


@dataclass(frozen=True, kw_only=True)
class MetadataRecord:
    """Values with their own metadata keys; None and empty values are not stored."""

    def to_metadata(self) -> dict[str, Any]:
        """Return the metadata to store."""
        stored = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None and (value or not isinstance(value, (tuple, Mapping))):
                stored[entry.metadata["key"]] = entry.metadata["write"](value)
        return stored

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the record from Dagster or plain metadata values."""
        values = {}
        for entry in fields(cls):
            key = entry.metadata["key"]
            if key in metadata:
                values[entry.name] = entry.metadata["read"](_plain(metadata[key]))
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class DeclaredMetadata(MetadataRecord):
    """Metadata of a table before its first write."""

    column_schema: dg.TableSchema | None = field(default=None, metadata=_SCHEMA)
    storage_kind: str | None = _key("dagster/storage_kind", _text)
    write_mode: str | None = _key("iceberg/write_mode", _text)
    partitioning: str | None = _key("iceberg/partitioning", _text)
    quarantine: dg.AssetKey | None = field(
        default=None, metadata=_stored("lakehouse/quarantine", _asset)
    )
    """The table with rejected rows."""
    contract: str | None = _key("lakehouse/contract", _text)
    """The command that prints the data contract."""


@dataclass(frozen=True, kw_only=True)
class WriteMetadata(MetadataRecord):
    """State of a table after a write, and statistics of the write.

    `nr_rows` counts the input rows before cleaning; the other counts are rows and files in the
    table.
    """

    row_count: int | None = _key("dagster/row_count", _count)
    partition_row_count: int | None = _key("dagster/partition_row_count", _count)
    column_schema: dg.TableSchema | None = field(default=None, metadata=_SCHEMA)
    table_name: str | None = _key("dagster/table_name", _text)
    uri: str | None = _key("dagster/uri", _text)
    storage_kind: str | None = _key("dagster/storage_kind", _text)
    snapshot_id: int | None = _snapshot_key("iceberg/snapshot_id")
    nr_rows: int | None = _key("nr_rows", _count)
    operation: str | None = _key("iceberg/operation", _text)
    added_rows: int | None = _key("iceberg/added_rows", _count)
    deleted_rows: int | None = _key("iceberg/deleted_rows", _count)
    inserted_rows: int | None = _key("iceberg/inserted_rows", _count)
    updated_rows: int | None = _key("iceberg/updated_rows", _count)
    removed_rows: int | None = _key("iceberg/removed_rows", _count)
    added_files: int | None = _key("iceberg/added_files", _count)
    added_bytes: int | None = _key("iceberg/added_bytes", _count)
    inputs: Mapping[str, Mapping[str, Any]] = _mapping_key("iceberg/inputs")
    profiled_rows: int | None = _key(ROWS, _integer)
    """Number of rows in the column profile."""
    partitions: tuple[str, ...] = _texts_key("partitions")
    suppressed_rows: int | None = _key("left_out_rows", _count)
    """Input rows of erased data subjects."""
    spark_page: str | None = _key("spark_page", _text, dg.MetadataValue.url)
    """URL of the Spark UI on a cluster."""


@dataclass(frozen=True, kw_only=True)
class QuarantineMetadata(MetadataRecord):
    """Number of quarantined rows of a write, by rule.

    `outside_rows` belong to no partition of the table: each run counts them. `evaluated_rows`
    does not include them.
    """

    rows: int | None = _key("quarantined_rows", _count)
    new_rows: int | None = _key("newly_quarantined_rows", _count)
    table: str | None = _key("quarantine_table", _text)
    evaluated_rows: int | None = _key("judged_rows", _count)
    by_rule: Mapping[str, int] = _mapping_key("refused_by_rule")
    outside_rows: int | None = _key("quarantined_rows_outside_partitions", _count)


@dataclass(frozen=True, kw_only=True)
class BlockedMetadata(MetadataRecord):
    """A blocked write: the published snapshot and the branch with the candidate.

    `branch` is empty if nothing was staged, and None in other metadata.
    """

    branch: str | None = _key("iceberg/refused_branch", _text)
    candidate_snapshot_id: int | None = _snapshot_key("iceberg/refused_snapshot_id")
    snapshot_id: int | None = _snapshot_key("iceberg/snapshot_id")
    failed_rules: str | None = _key("failed_rules", _text)


@dataclass(frozen=True, kw_only=True)
class ErasureMetadata(MetadataRecord):
    """Progress of an erasure request after a run, as counts; contains no personal values.

    `request` is None in other metadata.
    """

    request: str | None = _key("erasure/request", _text)
    state: str | None = _key("erasure/state", _text)
    due_at: str | None = _key("erasure/due_at", _text)
    physical_due_at: str | None = _key("erasure/physical_due_at", _text)
    rows: Mapping[str, Mapping[str, int]] = _mapping_key("erasure/rows")
    """By table, and by branch or tag."""
    rewritten_files: int | None = _key("erasure/rewritten_files", _count)
    """Number of rewritten delivered files."""
    recomputed: tuple[str, ...] = _texts_key("erasure/recomputed")
    places: Mapping[str, str] = _mapping_key("erasure/places")
    """Outcome of each place other than tables and delivered files."""
    waiting: tuple[str, ...] = _texts_key("erasure/waiting")
    findings: tuple[str, ...] = _texts_key("erasure/findings")
    """What prevents a proof."""


@dataclass(frozen=True, kw_only=True)
class OverrideMetadata(MetadataRecord):
    """Who published a blocked write, why, and of which run; `run_id` is None in other metadata."""

    by: str = _key("overridden_by", str, default="")
    why: str = _key("overridden_for", str, default="")
    run_id: str | None = _key("refused_run", _text)


@dataclass(frozen=True)
class LandedFile:
    """A delivered file that is in bronze."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class RejectedReason:
    """A rejected delivered file, the reason, and its current path."""

    file: str
    reason: str
    kept_as: str


def _files_key(key: str, of: Callable[..., Any], *columns: str) -> Any:
    def file(row: Mapping[str, Any]) -> Any:
        return of(*(row.get(column) for column in columns))

    return _key(
        key,
        lambda value: tuple(map(file, _rows(value))),
        lambda files: sample_table(list(map(vars, files))),
        default=(),
    )


@dataclass(frozen=True, kw_only=True)
class LandingMetadata(MetadataRecord):
    """Files of a feed that a run processed, and their results."""

    files: int | None = _key("files", _count)
    rejected_files: int | None = _key("rejected_files", _count)
    delivered_rows: int | None = _key("delivered_rows", _count)
    delivered_bytes: int | None = _key("delivered_bytes", _count)
    landed: tuple[LandedFile, ...] = _files_key("landed", LandedFile, "file", "rows", "sha256")
    rejected: tuple[RejectedReason, ...] = _files_key(
        "rejected", RejectedReason, "file", "reason", "kept_as"
    )
    waiting_files: int | None = _key("waiting_files", _count)
    archived: tuple[str, ...] = _texts_key("archived")
    unsettled: tuple[str, ...] = _texts_key("unsettled")
    warnings: tuple[str, ...] = _texts_key("warnings")
    suppressed_rows: int | None = _key("left_out_rows", _count)
    """Rows of erased data subjects."""


@dataclass(frozen=True, kw_only=True)
class CheckMetadata(MetadataRecord):
    """What a check evaluated, and its counts or measured value.

    `threshold` is the share of rows above which the check fails or warns. Rules that measure a
    value have `value` and bounds in place of counts.
    """

    failed_rows: int | None = _key("failed_rows", _count)
    total_rows: int | None = _key("total_rows", _count)
    threshold: float | None = _key("threshold", _number)
    warn_above: float | None = _key("warn_above", _number)
    note: str | None = _key("note", _text)
    value: float | None = _key("value", _number)
    low: float | None = _key("low", _number)
    high: float | None = _key("high", _number)
    warn_low: float | None = _key("warn_low", _number)
    warn_high: float | None = _key("warn_high", _number)
    predicate: str | None = _key("predicate", _text)
    evaluated: Literal["main", "candidate"] | None = _key("evaluated", _text)
    snapshot_id: int | None = _snapshot_key("snapshot_id")
    partitions: tuple[str, ...] = _texts_key("partitions")
    branch: str | None = _key("branch", _text)
    sample: tuple[Mapping[str, Any], ...] = _key("sample", _rows, sample_table, default=())


def metric_values(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of a write that are also metrics."""
    values = plain_values(metadata).items()
    return {name: value for name, value in values if name.startswith(_METRICS)}


def health_metadata(metrics: Mapping[str, int | float | None]) -> dict[str, int | float]:
    """Return table health metrics as observation metadata, which Dagster plots over time."""
    return {f"health/{name}": value for name, value in metrics.items() if value is not None}
