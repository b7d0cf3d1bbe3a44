"""A run's metrics appended to their table, once; and what runs were left without."""

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import add_run_tags, show_with_run
from lakehouse.orchestration.written_metadata import table_metadata
from lakehouse.quality.metrics.run_metrics import Zones, metrics_of_run
from lakehouse.runtime.run_tags import HIDDEN_PREFIX
from lakehouse.tables.table import IcebergTable

MEASURED_AT = "measured_at"
RECORDED = f"{HIDDEN_PREFIX}metrics"
"""Tag of a run whose metrics are recorded: its id, and how many there are."""
HINDERED = f"{HIDDEN_PREFIX}metrics-hindered"
"""Tag of a run whose metrics could not be recorded at first: its id; it is reported once."""
LOOK_BACK = timedelta(days=2)
_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorder:
    """What the metrics of runs are kept in, and where the days of the tables begin."""

    engine: Engine
    table: IcebergTable
    zones: Zones = field(default_factory=dict)

    def record(self, instance: dg.DagsterInstance, run_id: str) -> int:
        """Append the metrics of an ended run in one commit, once; return how many there are.

        The table itself knows whose metrics it has; the run's tag only spares the look.
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
        """Record a run; what hinders it is shown, in the log and with the run, and fails
        nothing.
        """
        try:
            self.record(instance, run_id)
        except Exception as error:
            _report(
                instance,
                run_id,
                f"The metrics of run {run_id[:8]} are not recorded yet, which is tried again:"
                f" {error}",
            )
            return False
        return True


def _report(instance: dg.DagsterInstance, run_id: str, message: str) -> None:
    _log.warning(message)
    run = instance.get_run_by_id(run_id)
    if run is not None and run.tags.get(HINDERED) != run_id:
        show_with_run(instance, run, message)
        add_run_tags(instance, run_id, {HINDERED: run_id})


def unrecorded(instance: dg.DagsterInstance, limit: int) -> list[str]:
    """Return the runs that ended in the last two days without their metrics recorded, oldest
    first, at most `limit`.
    """
    since = datetime.now(UTC) - LOOK_BACK
    filters = dg.RunsFilter(statuses=_ENDED, updated_after=since)
    newest_first = [record.dagster_run for record in instance.get_run_records(filters)]
    run_ids = [run.run_id for run in newest_first if not _is_recorded(run)]
    return run_ids[::-1][:limit]


def _is_recorded(run: dg.DagsterRun) -> bool:
    """Whether the metrics of a run are recorded; one that is executed again has the tags of the
    one before it, too.
    """
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
    """Let Dagster show the append; it was made by no step, so it is told beside the runs."""
    written = replace(table_metadata(engine.catalog, table, snapshot_id), nr_rows=rows)
    instance.report_runless_asset_event(
        dg.AssetMaterialization(
            asset_key(table.name),
            metadata={**written.to_metadata(), "of_run": run_id},
            tags={"dagster/data_version": str(snapshot_id)},
        )
    )
