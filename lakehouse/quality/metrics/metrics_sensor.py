"""Record the metrics of runs: after a command's run, or by a sensor for all other runs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.orchestration.runs import AFTER_RUN
from lakehouse.quality.metrics.anomaly_check import no_anomaly_checks
from lakehouse.quality.metrics.record_metrics import Recorder, unrecorded
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable

_log = logging.getLogger(__name__)
_MOST_OTHER_RUNS = 3
"""The maximum number of other runs that a command records; these are runs whose process was
killed.
"""
_PER_TICK = 50
_SECONDS = 30


@dataclass(frozen=True)
class RunMetrics:
    """Records the metrics of runs in a table, using the time zones of the tables."""

    table: IcebergTable
    time_zones: Mapping[str, str]
    read_settings: Callable[[], Settings]

    def definitions(self, tables: Sequence[str]) -> dg.Definitions:
        """Return the sensor, the hook that commands call after a run, and the anomaly checks."""
        checks = no_anomaly_checks(tables, self.table.name, self.time_zones)
        return dg.Definitions(
            asset_checks=checks,
            sensors=[self._sensor()],
            resources={AFTER_RUN: self.after_run},
        )

    def after_run(self, instance: dg.DagsterInstance, run_id: str) -> None:
        """Record a command's run and a few unrecorded ones; errors are only logged."""
        try:
            recorder = self.recorder()
            unrecorded_runs = unrecorded(instance, _MOST_OTHER_RUNS)
        except Exception as error:
            _log.warning(
                "The metrics of run %s are not recorded yet, which is tried again: %s",
                run_id[:8],
                error,
            )
            return
        for finished_run in dict.fromkeys([run_id, *unrecorded_runs]):
            recorder.try_to_record(instance, finished_run)

    def recorder(self) -> Recorder:
        """Return a recorder on the catalog of the metrics table."""
        zones = {table: ZoneInfo(name) for table, name in self.time_zones.items()}
        return Recorder(open_engine(self.read_settings()), self.table, zones)

    def _sensor(self) -> dg.SensorDefinition:
        @dg.sensor(
            name="run_metrics",
            minimum_interval_seconds=_SECONDS,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                f"Appends the metrics of each finished run to {self.table.name}, once per run."
                " It finds unrecorded runs by their tags, without a cursor and without Spark."
            ),
        )
        def run_metrics(context: dg.SensorEvaluationContext) -> dg.SkipReason:
            run_ids = unrecorded(context.instance, _PER_TICK)
            if not run_ids:
                return dg.SkipReason("The metrics of all finished runs are recorded.")
            recorder = self.recorder()
            done = sum(recorder.try_to_record(context.instance, run_id) for run_id in run_ids)
            return dg.SkipReason(f"Recorded the metrics of {done} of {len(run_ids)} runs.")

        return run_metrics
