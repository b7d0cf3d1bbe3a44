"""Metrics of a run, from its Dagster events and snapshot metadata; no table is scanned."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo

import dagster as dg

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.erasure.erasure_commits import rows_erased_between
from lakehouse.iceberg.metadata.snapshots import History, history_of
from lakehouse.iceberg.rules.column_profile import NULL_FRACTION
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.metadata_keys import (
    CheckMetadata,
    LandingMetadata,
    WriteMetadata,
    metric_values,
)
from lakehouse.quality.metrics.metric import (
    DAILY_GROWTH,
    FAILED_FRACTION,
    NR_ROWS,
    RECORD_COUNT,
    Metric,
    partition_text,
)


def growth_since_midnight(
    catalog: Catalog, table: str, snapshot_id: int, at: datetime, zone: tzinfo
) -> int | None:
    """Return the row count of a snapshot minus that at the start of its day. None if that is
    unknown or the table was dropped. Rows erased since count as existing.

    The day starts at the table's midnight, not 24 hours earlier: a file that arrives at about
    nine each day would otherwise be counted twice on some days and not at all on others.
    """
    try:
        history = history_of(table, catalog.load(table))
    except TableNotFound:
        return None
    if snapshot_id not in history.snapshots:
        return None
    rows, midnight = history.snapshots[snapshot_id].rows, midnight_of(at, zone)
    before = rows_before(history, midnight)
    if before is None:
        return None
    seen = history.seen_at(midnight)
    # Rows lost before midnight do not count.
    erased = rows_erased_between(history, seen.snapshot_id, snapshot_id) if seen else 0
    return rows + erased - before


def midnight_of(at: datetime, zone: tzinfo) -> datetime:
    """Return the start of a day in a time zone."""
    return at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)


def rows_before(history: History, midnight: datetime) -> int | None:
    """Return the row count at midnight; 0 if the table is newer, None if the history expired."""
    if (
        history.log
        and midnight < history.log[0][0]
        and history.line
        and history.line[-1].is_first_snapshot
    ):
        return 0
    seen = history.seen_at(midnight)
    return seen.rows if seen else None


Zones = Mapping[str, tzinfo]
"""The time zone of each table's days; default: UTC."""


def metrics_of_run(
    instance: dg.DagsterInstance, run_id: str, catalog: Catalog, zones: Zones
) -> list[Metric]:
    """Return the metrics of a run so far, from its writes and checks."""
    types = {
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    }
    metrics: list[Metric] = []
    writes: set[tuple[dg.AssetKey, int | None]] = set()
    for entry in events_of_run(instance, run_id, types):
        event, at = entry.dagster_event, datetime.fromtimestamp(entry.timestamp, UTC)
        assert event is not None
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            metrics += of_check(event.asset_check_evaluation_data, at)
        else:
            materialization = event.step_materialization_data.materialization
            # A write of several partitions has one event per partition, but is one write.
            written = WriteMetadata.from_metadata(materialization.metadata)
            write = (materialization.asset_key, written.snapshot_id)
            if write not in writes:
                metrics += of_write(materialization, at, catalog, zones)
                writes.add(write)
    return metrics


def of_write(
    materialization: dg.AssetMaterialization, at: datetime, catalog: Catalog, zones: Zones
) -> Iterator[Metric]:
    """Yield the metrics of a write; none for assets that are not tables of the lakehouse."""
    written = WriteMetadata.from_metadata(materialization.metadata)
    if written.row_count is None:
        return
    table = table_name(materialization.asset_key)
    # A run without files is not an ingest; a file without rows is.
    has_files = LandingMetadata.from_metadata(materialization.metadata).files
    nr_rows = written.nr_rows or (0 if has_files else None)
    values: dict[str, float | None] = {RECORD_COUNT: written.row_count, NR_ROWS: nr_rows}
    if written.snapshot_id is not None:
        values[DAILY_GROWTH] = growth_since_midnight(
            catalog, table, written.snapshot_id, at, zones.get(table, UTC)
        )
    values |= metric_values(materialization.metadata)
    partition = partition_text(written.partitions)
    for name, value in values.items():
        if value is not None:
            of_rows = written.profiled_rows if name.startswith(NULL_FRACTION) else None
            yield Metric(table, name, float(value), at, written.snapshot_id, partition, of_rows)


def of_check(evaluation: dg.AssetCheckEvaluation, at: datetime) -> Iterator[Metric]:
    """Yield the failed share of a check; 0 or 1 if it counts no rows, nothing without rows."""
    check_metadata = CheckMetadata.from_metadata(evaluation.metadata)
    failed, total = check_metadata.failed_rows, check_metadata.total_rows
    if total == 0:
        return
    yield Metric(
        table_name(evaluation.asset_key),
        f"{FAILED_FRACTION}.{evaluation.check_name}",
        failed / total if failed is not None and total else float(not evaluation.passed),
        at,
        check_metadata.snapshot_id,
        partition_text(check_metadata.partitions),
        total,
    )
