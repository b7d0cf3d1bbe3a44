"""Source rows that no run of a table reads, because they are in none of its partitions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import (
    has_live_files,
    partition_values,
    read_manifests,
    readable,
)
from lakehouse.iceberg.metadata.partition_metadata import (
    changed_values,
    is_timestamp_column,
    partition_field_of,
)
from lakehouse.iceberg.metadata.snapshots import History, read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import partition_only_sources, waiting_values
from lakehouse.iceberg.values.value_ranges import AllPartitions, rows_of, text
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Pin, RuleResult, by_table
from lakehouse.tables.quoting import literal
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.table import Table


def outside_values(
    table: "Table", snapshot_id: int, column: str, every: AllPartitions
) -> Counter[Any]:
    """Return the values of a partition column outside of all partitions, with the rows of their
    files.

    None represents rows without a value. A day is included if only some of its timestamps are
    in a partition.

    :raises DeclarationError: if some files have a partition spec without the column.
    """
    from pyiceberg.manifest import ManifestContent

    rows: Counter[Any] = Counter()
    for manifest in read_manifests(table, snapshot_id):
        if not has_live_files(manifest):
            continue
        spec = table.specs()[manifest.partition_spec_id]
        field = partition_field_of(table, spec, column)
        if manifest.content == ManifestContent.DELETES or _is_within(
            table, manifest, field, every
        ):
            continue
        for entry in manifest.fetch_manifest_entry(table.io):
            value = partition_values(table, spec, entry)[field.field_id]
            if not every.has_all_of(value):
                rows[value] += entry.data_file.record_count
    return rows


def _is_within(
    table: "Table", manifest: "ManifestFile", field: "PartitionField", every: AllPartitions
) -> bool:
    """Whether all files of a manifest are in partitions, by its bounds."""
    from pyiceberg.conversions import from_bytes

    spec = table.specs()[manifest.partition_spec_id]
    if not manifest.partitions:
        return False
    summary = manifest.partitions[spec.fields.index(field)]
    lower, upper = summary.lower_bound, summary.upper_bound
    if summary.contains_null or lower is None or upper is None:
        return False
    result_type: Any = field.transform.result_type(table.schema().find_type(field.source_id))
    low = readable(from_bytes(result_type, lower), str(result_type))
    high = readable(from_bytes(result_type, upper), str(result_type))
    return every.has_between(low, high)


HAS_PARTITION = "has_partition"
"""Name of the rule that these rows break, and their reason in the quarantine."""
IS_OUTSIDE_PARTITIONS = f"array_contains(_reasons, {literal(HAS_PARTITION)})"
"""The SQL predicate of these rows in the quarantine."""


@dataclass(frozen=True)
class OutsidePartitions:
    """Rows of a source that are in no partition, as of the pinned snapshot.

    `values` contains their values of `column`, with the rows of the files that have them.
    `waiting` contains values that became partitions since, and that are not in this run; their
    rows stay in the quarantine until a run computes them.
    """

    source: Pin
    column: str
    every: AllPartitions
    values: Mapping[Any, int]
    waiting: frozenset[Any] = frozenset()
    is_settled: bool = False
    """Whether an earlier run has processed the same rows."""
    is_timestamp: bool = False
    """Whether the column has a timestamp type, so that a value can be a day."""

    @property
    def rows(self) -> int:
        """Number of rows in the files that contain such rows."""
        return sum(self.values.values())

    @property
    def where(self) -> str:
        """The SQL predicate of the source rows that are in the quarantine."""
        outside = self.every.outside(self.column)
        if not self.waiting:
            return outside
        waiting = rows_of(self.column, self.waiting, is_timestamp=self.is_timestamp)
        return f"({outside} OR {waiting})"

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The values as text, as stored in a commit."""
        known = sorted(_text(value) for value in self.values if value is not None)
        return (*known, *([None] if None in self.values else []))


class HasPartitionRule(Rule):
    """A rule on source rows that is evaluated from metadata."""

    is_row_rule: ClassVar[bool] = True
    warns_as_error: ClassVar[bool] = True

    @property
    def sql(self) -> str:
        """The description of the rule; no SQL can evaluate it."""
        return self.description


def has_partition(table: IcebergTable) -> Rule:
    """Return the rule that each source row is in a partition of the table."""
    by = table.overwritten_by or ""
    return HasPartitionRule(
        HAS_PARTITION,
        f"each row that is read belongs to a partition of {by}",
        (by,),
        "quarantine" if table.quarantine else "warn",
    )


def find_outside_partitions(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    run: Run,
) -> list[OutsidePartitions]:
    """Return the rows in no partition, by source that is read by partitions."""
    every = run.partitions.every if run.partitions else None
    if every is None:
        return []
    read = by_table(pins.values())
    sources = partition_only_sources(table, inputs)
    return [
        _find(engine, table, read[name], by, every, run)
        for name, by in sources.items()
        if read[name].snapshot_id is not None
    ]


def evaluate_by_metadata(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    every: AllPartitions | None,
) -> list[RuleResult]:
    """Evaluate the rule at the sources' watermarks; empty if there are none."""
    sources = partition_only_sources(table, inputs)
    if every is None or not engine.catalog.has(table.name):
        return []
    target = read_history(engine, table.name)
    outside = total = 0
    for name, column in sources.items():
        since, history = target.watermark(name), read_history(engine, name)
        if since is not None and since in history.snapshots:
            values = outside_values(engine.catalog.load(name), since, column, every)
            outside += sum(rows for value, rows in values.items() if not every.has(value))
            total += history.snapshots[since].rows
    return [RuleResult(has_partition(table), outside, max(outside, total))] if sources else []


def was_outside_partitions(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    partitions: Partitions | None,
) -> bool:
    """Whether rows of a run's partitions arrived before these were defined."""
    if partitions is None:
        return False
    waiting = (
        waiting_values(engine, table, source, partitions.every)
        for source in partition_only_sources(table, inputs)
    )
    return any(partitions.touches(value) for values in waiting for value in values)


def stamped(
    history: History, outside_partitions: list[OutsidePartitions], marks: Mapping[str, int]
) -> dict[str, tuple[str | None, ...]]:
    """Return the values to record in a commit; the previous ones while a watermark stays."""
    return {
        rows.source.table: (
            rows.texts
            if marks.get(rows.source.table) == rows.source.snapshot_id
            else history.outside_partitions(rows.source.table)
        )
        for rows in outside_partitions
    }


def _find(
    engine: Engine,
    table: IcebergTable,
    source: Pin,
    column: str,
    every: AllPartitions,
    run: Run,
) -> OutsidePartitions:
    assert source.snapshot_id is not None
    loaded = engine.catalog.load(source.table)
    values = outside_values(loaded, source.snapshot_id, column, every)
    waiting = waiting_values(engine, table, source.table, every)
    assert run.partitions is not None
    still = frozenset(value for value in waiting if not run.partitions.has(value))
    rows = OutsidePartitions(
        Pin(source.table, source.snapshot_id),
        column,
        every,
        values,
        still,
        is_timestamp=is_timestamp_column(loaded, column),
    )
    is_settled = not run.full_recompute and not waiting and _is_settled(engine, table, rows)
    return replace(rows, is_settled=is_settled)


def _is_settled(engine: Engine, table: IcebergTable, rows: OutsidePartitions) -> bool:
    """Whether the newest run has processed the same values, in the same files."""
    target, name = read_history(engine, table.name), rows.source.table
    commits = (snapshot.commit for snapshot in target.line if snapshot.commit)
    newest = next((commit for commit in commits if name in commit.read), None)
    if newest is None or newest.outside_partitions.get(name) != rows.texts:
        return not rows.values and not (newest and newest.outside_partitions.get(name))
    if any(rows.every.has(value) for value in rows.values):
        # If only some timestamps of a day are in a partition, the number of rows outside is
        # unknown.
        return False
    assert rows.source.snapshot_id is not None
    source, loaded = read_history(engine, name), engine.catalog.load(name)
    since = changed_values(
        loaded, source, newest.read[name], rows.source.snapshot_id, rows.column
    )
    is_known = source.kept_between(newest.read[name], rows.source.snapshot_id) is not None
    return is_known and all(rows.every.has_all_of(value) for value in since)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else text(value)
