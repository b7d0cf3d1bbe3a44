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
from lakehouse.quality.metrics.compared_metrics import Watched, watch
from lakehouse.quality.metrics.metric import NO_ANOMALY, RECORD_COUNT, Metric
from lakehouse.quality.metrics.recent_metrics import recent_metrics
from lakehouse.quality.metrics.run_metrics import metrics_of_run


def no_anomaly_checks(
    tables: Sequence[str], metrics_table: str, time_zones: Mapping[str, str]
) -> dg.AssetChecksDefinition:
    """Make the checks of some tables, all in one step at the end of a run.

    After a write they judge what the run measured, alone what was measured last. Where there is
    not enough history they say nothing, and so does Dagster. What hinders them is told in the
    log, and fails no run.
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
            evaluated = _evaluated(
                context, context.resources.engine, sorted(selected), metrics_table, time_zones
            )
        except Exception as error:
            context.log.warning(
                f"The metrics of {', '.join(selected)} could not be judged: {error}"
            )
            return
        yield from (anomaly_result(table, found) for table, found in evaluated.items() if found)

    return no_anomaly


def _evaluated(
    context: dg.AssetCheckExecutionContext,
    engine: Engine,
    tables: Sequence[str],
    metrics_table: str,
    time_zones: Mapping[str, str],
) -> dict[str, list[Watched]]:
    zones = {table: ZoneInfo(time_zones.get(table, "UTC")) for table in tables}
    run_id = context.run.run_id
    mine = metrics_of_run(context.instance, run_id, engine.catalog, zones)
    past = recent_metrics(
        engine.catalog, metrics_table, tables, datetime.now(UTC), but_run=run_id
    )
    found = {}
    for table in tables:
        before = [metric for metric in past if metric.table == table]
        found[table] = watch(_newest(table, mine, before), before, zones[table])
    return found


def _newest(table: str, of_run: Sequence[Metric], past: Sequence[Metric]) -> list[Metric]:
    """Return what the run measured of a table; where it did not write it, the last of each
    metric there is.
    """
    mine = [metric for metric in of_run if metric.table == table]
    if any(metric.name == RECORD_COUNT for metric in mine):
        return mine
    return list({metric.name: metric for metric in past}.values())


def anomaly_result(table: str, found: Sequence[Watched]) -> dg.AssetCheckResult:
    """Return what was judged as the result of the check: a warning that explains each number
    that is outside.
    """
    outside = [one for one in found if one.evaluation.is_anomaly]
    are = "metric is what its" if len(found) == 1 else "metrics are what their"
    said = " ".join(map(str, outside)) or f"{len(found)} {are} recent past suggests."
    return dg.AssetCheckResult(
        check_name=NO_ANOMALY,
        asset_key=asset_key(table),
        passed=not outside,
        severity=dg.AssetCheckSeverity.WARN,
        description=said,
        metadata={
            "anomalies": len(outside),
            "judged_metrics": len(found),
            "metrics": sample_table([_record(one) for one in found]),
        },
    )


def _record(one: Watched) -> dict[str, object]:
    evaluation = one.evaluation
    return {
        "metric": one.metric.name,
        "value": one.metric.value,
        "expected": evaluation.expected,
        "least": evaluation.least if one.kind.low else None,
        "most": evaluation.most if one.kind.high else None,
        "anomaly": evaluation.is_anomaly,
        "days": len(evaluation.past),
    }
