"""The check that a table's metrics match their recent history; it only warns."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import sample_table
from lakehouse.quality.anomaly.detection import WINDOW_DAYS
from lakehouse.quality.metrics.compared_metrics import (
    ComparedMetric,
    comparable,
    compare_metrics,
    last_measured,
)
from lakehouse.quality.metrics.metric import NO_ANOMALY, RECORD_COUNT, Metric
from lakehouse.quality.metrics.run_metrics import metrics_of_run
from lakehouse.tables.quoting import literals

_FIELDS = ("table_name", "metric", "value", "measured_at", "snapshot_id", "partition", "run_id")


def recent_metrics(
    catalog: Catalog,
    metrics_table: str,
    tables: Collection[str],
    now: datetime,
    *,
    but_run: str,
) -> list[Metric]:
    """Return the metrics of some tables within the anomaly window, oldest first, without those
    of one run.

    Iceberg prunes files by timestamp and table name.
    """
    if not tables or not catalog.has(metrics_table):
        return []
    since = now - timedelta(days=WINDOW_DAYS + 1)
    where = (
        f"table_name IN {literals(tables)} AND measured_at >= '{since.isoformat()}'"
        f" AND run_id <> '{but_run}'"
    )
    scan = catalog.load(metrics_table).scan(where, selected_fields=_FIELDS)
    rows = scan.to_arrow().sort_by("measured_at").to_pylist()
    return [
        Metric(
            table=row["table_name"],
            name=row["metric"],
            value=row["value"],
            measured_at=row["measured_at"],
            snapshot_id=row["snapshot_id"],
            partition=row["partition"],
            run_id=row["run_id"],
        )
        for row in rows
    ]


def no_anomaly_checks(
    tables: Sequence[str], metrics_table: str, time_zones: Mapping[str, str]
) -> list[dg.AssetChecksDefinition]:
    """Make the check of each table. After a write it compares the run's metrics, otherwise the
    last recorded ones.

    Each check is its own step and passes without enough history. If a run fails, Dagster skips
    checks that share a step with a failed table, and shows a check without a result as failed.
    An evaluation error is logged and does not fail the run.
    """
    return [
        _no_anomaly_check(table, metrics_table, ZoneInfo(time_zones.get(table, "UTC")))
        for table in tables
    ]


def _no_anomaly_check(
    table: str, metrics_table: str, zone: ZoneInfo
) -> dg.AssetChecksDefinition:
    spec = dg.AssetCheckSpec(
        NO_ANOMALY,
        asset=asset_key(table),
        description=(
            "Rows, growth and fractions are what their own recent past suggests, weekday by"
            " weekday."
        ),
        blocking=False,
    )

    @dg.multi_asset_check(
        name=f"{table.replace('.', '__')}__{NO_ANOMALY}",
        specs=[spec],
        can_subset=True,
        required_resource_keys={"engine"},
    )
    def no_anomaly(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        try:
            compared = _compare(context, context.resources.engine, table, metrics_table, zone)
        except Exception as error:
            context.log.warning(f"The metrics of {table} could not be evaluated: {error}")
            return
        yield anomaly_result(table, compared)

    return no_anomaly


def _compare(
    context: dg.AssetCheckExecutionContext,
    engine: Engine,
    table: str,
    metrics_table: str,
    zone: ZoneInfo,
) -> list[ComparedMetric]:
    run_id = context.run.run_id
    of_run = metrics_of_run(context.instance, run_id, engine.catalog, {table: zone})
    recent = recent_metrics(
        engine.catalog, metrics_table, [table], datetime.now(UTC), but_run=run_id
    )
    past = comparable(recent)
    return compare_metrics(_newest(table, of_run, past), past, zone)


def _newest(table: str, of_run: Sequence[Metric], past: Sequence[Metric]) -> list[Metric]:
    """Return the run's metrics of a table; if it did not write it, the last of each metric."""
    table_metrics = [metric for metric in of_run if metric.table == table]
    if any(metric.name == RECORD_COUNT for metric in table_metrics):
        return table_metrics
    return last_measured(past)


def anomaly_result(table: str, compared: Sequence[ComparedMetric]) -> dg.AssetCheckResult:
    """Return the check result: a warning that explains each anomaly."""
    anomalies = [str(metric) for metric in compared if metric.evaluation.is_anomaly]
    are = "metric is what its" if len(compared) == 1 else "metrics are what their"
    expected = f"{len(compared)} {are} recent past suggests."
    if not compared:
        expected = "No metric has enough history to be compared with."
    return dg.AssetCheckResult(
        check_name=NO_ANOMALY,
        asset_key=asset_key(table),
        passed=not anomalies,
        severity=dg.AssetCheckSeverity.WARN,
        description=" ".join(anomalies) or expected,
        metadata={
            "anomalies": len(anomalies),
            "compared_metrics": len(compared),
            "metrics": sample_table([_record(metric) for metric in compared]),
        },
    )


def _record(compared: ComparedMetric) -> dict[str, object]:
    evaluation = compared.evaluation
    return {
        "metric": compared.metric.name,
        "value": compared.metric.value,
        "expected": evaluation.expected,
        "least": evaluation.least if compared.kind.low else None,
        "most": evaluation.most if compared.kind.high else None,
        "anomaly": evaluation.is_anomaly,
        "days": len(evaluation.past),
    }
