"""What a run measured, read from what Dagster has recorded of it; no table is scanned."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

import dagster as dg

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.rules.aggregates import DISTINCT_COUNT, NULL_FRACTION, ROWS
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.quality.metrics.growth import growth_since_midnight
from lakehouse.quality.metrics.metric import (
    DAILY_GROWTH,
    FAILED_FRACTION,
    NR_ROWS,
    RECORD_COUNT,
    Metric,
    partition_text,
)

_KEPT = ("scanned_", f"{NULL_FRACTION}.", f"{DISTINCT_COUNT}.")
"""How the names of the other numbers begin that the metadata of a write has."""
Zones = Mapping[str, tzinfo]
"""By table, where its days begin; UTC where it is not named."""


def metrics_of_run(
    instance: dg.DagsterInstance, run_id: str, catalog: Catalog, zones: Zones
) -> list[Metric]:
    """Return what a run measured so far: of the tables that it wrote, and of each check that it
    evaluated.
    """
    types = {
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    }
    found: list[Metric] = []
    for record in instance.get_records_for_run(run_id, of_type=types).records:
        entry = record.event_log_entry
        event, at = entry.dagster_event, datetime.fromtimestamp(entry.timestamp, UTC)
        assert event is not None
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            found += of_check(event.asset_check_evaluation_data, at)
        else:
            found += of_write(
                event.step_materialization_data.materialization, at, catalog, zones
            )
    return found


def of_write(
    made: dg.AssetMaterialization, at: datetime, catalog: Catalog, zones: Zones
) -> Iterator[Metric]:
    """Yield what a write measured; nothing of an asset that is no table of ours."""
    metadata = _plain(made.metadata)
    if "dagster/row_count" not in metadata:
        return
    table = table_name(made.asset_key)
    snapshot_id = _id(metadata.get("iceberg/snapshot_id"))
    # A run that found nothing to read was no ingest; a delivered file without rows is one.
    nr_rows = metadata.get("nr_rows") or (0 if metadata.get("files") else None)
    values = {RECORD_COUNT: metadata["dagster/row_count"], NR_ROWS: nr_rows}
    if snapshot_id is not None:
        values[DAILY_GROWTH] = growth_since_midnight(
            catalog, table, snapshot_id, at, zones.get(table, UTC)
        )
    values |= {name: value for name, value in metadata.items() if name.startswith(_KEPT)}
    partition = partition_text(metadata.get("partitions") or [])
    for name, value in values.items():
        if value is not None:
            of_rows = metadata.get(ROWS) if name.startswith(NULL_FRACTION) else None
            yield Metric(table, name, float(value), at, snapshot_id, partition, of_rows)


def of_check(evaluation: dg.AssetCheckEvaluation, at: datetime) -> Iterator[Metric]:
    """Yield the share of the rows that failed a check, all or none where it counts no rows;
    nothing where none were.
    """
    metadata = _plain(evaluation.metadata)
    failed, total = metadata.get("failed_rows"), metadata.get("total_rows")
    if total == 0:
        return
    share = failed / total if failed is not None and total else float(not evaluation.passed)
    name = f"{FAILED_FRACTION}.{evaluation.check_name}"
    partition = partition_text(metadata.get("partitions") or [])
    snapshot_id = _id(metadata.get("snapshot_id"))
    yield Metric(
        table_name(evaluation.asset_key), name, share, at, snapshot_id, partition, total
    )


def _id(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() else None


def _plain(metadata: Mapping[str, dg.MetadataValue]) -> dict[str, Any]:
    return {
        name: value.value
        for name, value in metadata.items()
        if not isinstance(value, dg.TableMetadataValue)
    }
