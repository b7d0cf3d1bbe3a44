"""When the metrics of runs are recorded: by the command that ran one, else by a sensor; with
those that other runs are without.
"""

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
"""Runs that a command records beside its own: those whose process was killed, of which there
are few.
"""
_PER_TICK = 50
_SECONDS = 30


@dataclass(frozen=True)
class RunMetrics:
    """What records the metrics of runs: the table that they are kept in, and the time zones of
    the tables.
    """

    table: IcebergTable
    time_zones: Mapping[str, str]
    read_settings: Callable[[], Settings]

    def definitions(self, tables: Sequence[str]) -> dg.Definitions:
        """Return the sensor, what commands call after a run, and the checks of tables for
        anomalies.
        """
        checks = no_anomaly_checks(tables, self.table.name, self.time_zones)
        return dg.Definitions(
            asset_checks=checks,
            sensors=[self._sensor()],
            resources={AFTER_RUN: self.after_run},
        )

    def after_run(self, instance: dg.DagsterInstance, run_id: str) -> None:
        """Record the run that a command made, and the few that were left without; fails
        nothing.
        """
        try:
            recorder = self.recorder()
            others = unrecorded(instance, _MOST_OTHER_RUNS)
        except Exception as error:
            _log.warning(
                "The metrics of run %s are not recorded yet, which is tried again: %s",
                run_id[:8],
                error,
            )
            return
        for ended in dict.fromkeys([run_id, *others]):
            recorder.try_to_record(instance, ended)

    def recorder(self) -> Recorder:
        """Open the catalog that the table is in."""
        zones = {table: ZoneInfo(name) for table, name in self.time_zones.items()}
        return Recorder(open_engine(self.read_settings()), self.table, zones)

    def _sensor(self) -> dg.SensorDefinition:
        @dg.sensor(
            name="run_metrics",
            minimum_interval_seconds=_SECONDS,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                f"Appends what each ended run measured to {self.table.name}, once a run. It"
                " sweeps up those that have none yet, and so needs no memory of its own; it"
                " starts no Spark."
            ),
        )
        def run_metrics(context: dg.SensorEvaluationContext) -> dg.SkipReason:
            run_ids = unrecorded(context.instance, _PER_TICK)
            if not run_ids:
                return dg.SkipReason("The metrics of each ended run are recorded.")
            recorder = self.recorder()
            done = sum(recorder.try_to_record(context.instance, run_id) for run_id in run_ids)
            return dg.SkipReason(f"Recorded the metrics of {done} of {len(run_ids)} runs.")

        return run_metrics
