"""Record the metrics of runs once: after a command's run, or by a sensor for all others."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import add_run_tags
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.run_in_process import AFTER_RUN
from lakehouse.orchestration.runs.run_result import FINISHED
from lakehouse.orchestration.written_metadata import table_metadata
from lakehouse.quality.metrics.anomaly_check import no_anomaly_checks
from lakehouse.quality.metrics.run_metrics import Zones, metrics_of_run
from lakehouse.settings import Settings
from lakehouse.spark.processes import HIDDEN_PREFIX
from lakehouse.tables.table import IcebergTable

MEASURED_AT = "measured_at"
RECORDED = f"{HIDDEN_PREFIX}metrics"
"""Tag of a run whose metrics are recorded: its id, and their number."""
LOOK_BACK = timedelta(days=2)
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
    filters = dg.RunsFilter(statuses=FINISHED, updated_after=since)
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


_MOST_OTHER_RUNS = 3
"""The maximum number of runs of killed processes that a command records."""
_PER_TICK = 50
_SECONDS = 30


def metrics_definitions(
    table: IcebergTable,
    time_zones: Mapping[str, str],
    read_settings: Callable[[], Settings],
    tables: Sequence[str],
) -> dg.Definitions:
    """Return the sensor, the hook that commands call after a run, and the anomaly checks.

    :param table: the table that stores metrics.
    :param time_zones: the time zone of the days of each table; default: UTC.
    :param tables: the names of the checked tables.
    """

    def open_recorder() -> Recorder:
        zones = {name: ZoneInfo(zone) for name, zone in time_zones.items()}
        return Recorder(open_engine(read_settings()), table, zones)

    def after_run(instance: dg.DagsterInstance, run_id: str) -> None:
        """Record a command's run and a few unrecorded ones; errors are only logged."""
        try:
            recorder = open_recorder()
            unrecorded_runs = unrecorded(instance, _MOST_OTHER_RUNS)
        except Exception as error:
            _log.warning("The metrics of run %s are recorded later: %s", run_id[:8], error)
            return
        for finished_run in dict.fromkeys([run_id, *unrecorded_runs]):
            recorder.try_to_record(instance, finished_run)

    @dg.sensor(
        name="run_metrics",
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Appends the metrics of each finished run to {table.name}, once per run. It finds"
            " unrecorded runs by their tags, without a cursor and without Spark."
        ),
    )
    def run_metrics(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        run_ids = unrecorded(context.instance, _PER_TICK)
        if not run_ids:
            return dg.SkipReason("The metrics of all finished runs are recorded.")
        recorder = open_recorder()
        done = sum(recorder.try_to_record(context.instance, run_id) for run_id in run_ids)
        return dg.SkipReason(f"Recorded the metrics of {done} of {len(run_ids)} runs.")

    return dg.Definitions(
        asset_checks=no_anomaly_checks(tables, table.name, time_zones),
        sensors=[run_metrics],
        resources={AFTER_RUN: after_run},
    )
