"""Records of table health: measures it, appends it to its table, and reports it to Dagster."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from lakehouse.errors import TableNotFound, TableUnreadable
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import is_audit, is_blocked
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.health_metrics import SnapshotPin, TableHealth
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import health_metadata
from lakehouse.tables.table import IcebergTable

MEASURED_AT = "measured_at"
FindPins = Callable[[str], Sequence[SnapshotPin]]
_Metrics = Mapping[str, int | float | None]
_log = logging.getLogger(__name__)


def record_health(
    instance: dg.DagsterInstance,
    engine: Engine,
    health_table: IcebergTable,
    tables: Sequence[str],
    declared: Collection[str],
    occasion: str,
    *,
    known: Mapping[str, TableHealth] | None = None,
    find_pins: FindPins | None = None,
    now: datetime | None = None,
    cached_engine: Engine | None = None,
) -> list[TableHealth]:
    """Measure tables, append their health in one commit, and report it to Dagster.

    Tables that cannot be read or were dropped are skipped and logged. Each occasion, such as a
    run id, is recorded once.

    :param declared: tables that Dagster knows; other tables only get a row.
    :param known: recent health by table, reused for unchanged tables.
    :param cached_engine: reads the tables, see `with_cached_locations`; default: `engine`.
    """
    now = now or datetime.now(UTC)
    reader, known = cached_engine or engine, known or {}
    measured = []
    for table in tables:
        try:
            health = known.get(table)
            location = reader.catalog.load(table).metadata_location
            if health and health.metadata_location == location:
                measured.append(replace(health, measured_at=now))
                continue
            pins = find_pins(table) if find_pins else ()
            measured.append(read_table_health(reader, table, pins=pins, now=now))
        except (TableUnreadable, TableNotFound) as error:
            _log.warning("The health of %s was not measured: %s", table, error)
    if not measured:
        return measured
    metrics = {health.table: health_metrics(health) for health in measured}
    rows = [
        {
            "table_name": health.table,
            MEASURED_AT: health.measured_at,
            "snapshot_id": health.snapshot_id,
            **metrics[health.table],
            "run_id": occasion,
        }
        for health in measured
    ]
    if append_once(engine, health_table, rows, occasion, made_at=MEASURED_AT) is None:
        return measured
    for table in metrics.keys() & set(declared):
        metadata = health_metadata(metrics[table])
        observation = dg.AssetObservation(asset_key(table), metadata=metadata)
        instance.report_runless_asset_event(observation)
    return measured


def health_metrics(health: TableHealth) -> _Metrics:
    """Return metrics by column of `monitoring.table_health`; None if not measurable."""
    branches = [ref.name for ref in health.refs if ref.is_branch]
    partitions, target_bytes = health.partitions, health.target_bytes
    unreferenced = health.lost_metadata_files
    oldest_days = metadata_share = None
    if health.snapshot_times:
        oldest_days = (health.measured_at - health.snapshot_times[0]) / timedelta(days=1)
    if health.metadata_bytes is not None and health.data_bytes:
        metadata_share = health.metadata_bytes / health.data_bytes
    return {
        "rows": health.rows,
        "partitions": len(partitions),
        "partitions_with_small_files": sum(
            partition.fewer_files(target_bytes) > 0 for partition in partitions
        ),
        "partitions_with_deletes": sum(partition.delete_files > 0 for partition in partitions),
        "data_files": health.data_files,
        "data_bytes": health.data_bytes,
        "small_files": health.small_files,
        "small_file_share": health.small_file_share,
        "fewer_files": health.fewer_files,
        "p10_file_bytes": health.file_sizes.get("p10"),
        "median_file_bytes": health.file_sizes.get("median"),
        "p90_file_bytes": health.file_sizes.get("p90"),
        "files_of_old_specs": health.files_of_old_specs,
        "delete_files": health.delete_files,
        "dangling_delete_files": health.dangling_delete_files,
        "deleted_rows": health.deleted_rows,
        "deleted_row_share": health.deleted_row_share,
        "snapshots": len(health.snapshot_times),
        "oldest_snapshot_days": oldest_days,
        "pins": len(health.pins),
        "manifests": health.manifests,
        "metadata_json_bytes": health.metadata_json_bytes,
        "metadata_bytes": health.metadata_bytes,
        "metadata_share": metadata_share,
        "lost_metadata_files": None if unreferenced is None else len(unreferenced),
        "branches": len(branches),
        "audit_branches": len(list(filter(is_audit, branches))),
        "refused_branches": len(list(filter(is_blocked, branches))),
        "tags": len(health.refs) - len(branches),
    }
