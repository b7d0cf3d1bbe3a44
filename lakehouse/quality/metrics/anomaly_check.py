"""The check of each table that its metrics are what their own recent past suggests; it only
ever warns.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.metadata_keys import sample_table
from lakehouse.quality.metrics.compared_metrics import (
    ComparedMetric,
    comparable,
    compare_metrics,
    last_measured,
)
from lakehouse.quality.metrics.metric import NO_ANOMALY, RECORD_COUNT, Metric
from lakehouse.quality.metrics.recent_metrics import recent_metrics
from lakehouse.quality.metrics.run_metrics import metrics_of_run


def no_anomaly_checks(
    tables: Sequence[str], metrics_table: str, time_zones: Mapping[str, str]
) -> dg.AssetChecksDefinition:
    """Make the checks of some tables, all in one step at the end of a run.

    After a write they compare what the run measured, alone what was measured last. Where there
    is not enough history they have no result, and so has Dagster. What hinders them is logged,
    and fails no run.
    """
    specs = [
        dg.AssetCheckSpec(
            NO_ANOMALY,
            asset=asset_key(table),
            description=(
                "Rows, growth and fractions are what their own recent past suggests, weekday by"
                " weekday."
            ),
            blocking=False,
        )
        for table in tables
    ]

    @dg.multi_asset_check(
        name=NO_ANOMALY, specs=specs, can_subset=True, required_resource_keys={"engine"}
    )
    def no_anomaly(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        selected = [table_name(key.asset_key) for key in context.selected_asset_check_keys]
        try:
            results = _results(
                context, context.resources.engine, sorted(selected), metrics_table, time_zones
            )
        except Exception as error:
            context.log.warning(
                f"The metrics of {', '.join(selected)} could not be evaluated: {error}"
            )
            return
        yield from results

    return no_anomaly


def _results(
    context: dg.AssetCheckExecutionContext,
    engine: Engine,
    tables: Sequence[str],
    metrics_table: str,
    time_zones: Mapping[str, str],
) -> list[dg.AssetCheckResult]:
    """Return the result of each table that has enough history."""
    zones = {table: ZoneInfo(time_zones.get(table, "UTC")) for table in tables}
    run_id = context.run.run_id
    of_run = metrics_of_run(context.instance, run_id, engine.catalog, zones)
    recent = recent_metrics(
        engine.catalog, metrics_table, tables, datetime.now(UTC), but_run=run_id
    )
    results = []
    for table in tables:
        past = comparable([metric for metric in recent if metric.table == table])
        compared = compare_metrics(_newest(table, of_run, past), past, zones[table])
        if compared:
            results.append(anomaly_result(table, compared))
    return results


def _newest(table: str, of_run: Sequence[Metric], past: Sequence[Metric]) -> list[Metric]:
    """Return what the run measured of a table; where it did not write it, the last of each
    metric there is.
    """
    table_metrics = [metric for metric in of_run if metric.table == table]
    if any(metric.name == RECORD_COUNT for metric in table_metrics):
        return table_metrics
    return last_measured(past)


def anomaly_result(table: str, compared: Sequence[ComparedMetric]) -> dg.AssetCheckResult:
    """Return the result of the check of a table: a warning that explains each number that is
    outside.
    """
    anomalies = [str(metric) for metric in compared if metric.evaluation.is_anomaly]
    are = "metric is what its" if len(compared) == 1 else "metrics are what their"
    return dg.AssetCheckResult(
        check_name=NO_ANOMALY,
        asset_key=asset_key(table),
        passed=not anomalies,
        severity=dg.AssetCheckSeverity.WARN,
        description=" ".join(anomalies) or f"{len(compared)} {are} recent past suggests.",
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
