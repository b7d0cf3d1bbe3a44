"""Record the metrics of runs: after a command's run, or by a sensor for all other runs."""

import logging
from collections.abc import Callable, Mapping, Sequence
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
