"""Append a run's metrics to their table once, and find unrecorded runs."""

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import add_run_tags
from lakehouse.orchestration.written_metadata import table_metadata
from lakehouse.quality.metrics.run_metrics import Zones, metrics_of_run
from lakehouse.runtime.run_tags import HIDDEN_PREFIX
from lakehouse.tables.table import IcebergTable

MEASURED_AT = "measured_at"
RECORDED = f"{HIDDEN_PREFIX}metrics"
"""Tag of a run whose metrics are recorded: its id, and their number."""
LOOK_BACK = timedelta(days=2)
_FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorder:
    """Records metrics of runs in a table, with the time zones of the tables' days."""

    engine: Engine
    table: IcebergTable
    zones: Zones = field(default_factory=dict)

    def record(self, instance: dg.DagsterInstance, run_id: str) -> int:
        """Append the metrics of a finished run in one commit, once; return their number.

        The table itself prevents duplicates; the run's tag only avoids the check.
        """
        rows = [
            metric.row(run_id)
            for metric in metrics_of_run(instance, run_id, self.engine.catalog, self.zones)
            if metric.table != self.table.name
        ]
        if rows:
            snapshot_id = append_once(
                self.engine, self.table, rows, run_id, made_at=MEASURED_AT
            )
            if snapshot_id is not None:
                _show(instance, self.engine, self.table, snapshot_id, run_id, len(rows))
        add_run_tags(instance, run_id, {RECORDED: f"{run_id} {len(rows)}"})
        return len(rows)

    def try_to_record(self, instance: dg.DagsterInstance, run_id: str) -> bool:
        """Record a run; an error is only logged."""
        try:
            self.record(instance, run_id)
        except Exception as error:
            _log.warning(
                "The metrics of run %s are not recorded yet, and it is retried: %s",
                run_id[:8],
                error,
            )
            return False
        return True


def unrecorded(instance: dg.DagsterInstance, limit: int) -> list[str]:
    """Return the oldest finished runs of the last two days without recorded metrics."""
    since = datetime.now(UTC) - LOOK_BACK
    filters = dg.RunsFilter(statuses=_FINISHED, updated_after=since)
    newest_first = [record.dagster_run for record in instance.get_run_records(filters)]
    run_ids = [run.run_id for run in newest_first if not _is_recorded(run)]
    return run_ids[::-1][:limit]


def _is_recorded(run: dg.DagsterRun) -> bool:
    """Whether a run is recorded; a re-executed run also has the tags of its parent."""
    run_id = run.tags.get(RECORDED, "").partition(" ")[0]
    return run_id == run.run_id


def _show(
    instance: dg.DagsterInstance,
    engine: Engine,
    table: IcebergTable,
    snapshot_id: int,
    run_id: str,
    rows: int,
) -> None:
    """Report the append as a runless materialization, since no step made it."""
    written = replace(table_metadata(engine.catalog, table, snapshot_id), nr_rows=rows)
    instance.report_runless_asset_event(
        dg.AssetMaterialization(
            asset_key(table.name),
            metadata={**written.to_metadata(), "of_run": run_id},
            tags={"dagster/data_version": str(snapshot_id)},
        )
    )
