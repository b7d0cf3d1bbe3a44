"""The check that a table's metrics match their recent history; it only warns."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from statistics import median
from zoneinfo import ZoneInfo

import dagster as dg

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.column_profile import DISTINCT_COUNT, NULL_FRACTION
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.quality.metrics.detection import (
    COUNT,
    FRACTION,
    GROWTH,
    WINDOW_DAYS,
    Evaluation,
    Kind,
    Point,
    evaluate,
)
from lakehouse.quality.metrics.metric import (
    DAILY_GROWTH,
    FAILED_FRACTION,
    NO_ANOMALY,
    NR_ROWS,
    RECORD_COUNT,
    Metric,
)
from lakehouse.quality.metrics.run_metrics import metrics_of_run
from lakehouse.tables.quoting import literals

_SHOWN = 8
"""The number of days summarized; for one weekday, two months."""


def explain(evaluation: Evaluation, kind: Kind, unit: str) -> str:
    """Return the value, the history that it is compared with, and the violated or satisfied
    bound.

    :param unit: the counted unit, such as `rows`; fractions are shown in percent.
    """
    shown = evaluation.past[-_SHOWN:]
    values = [point.value for point in shown]
    newest = evaluation.point
    days = f"{newest.day:%A}s" if evaluation.same_weekday else "days with a value"
    unit_text = f" {unit}" if unit else ""
    return (
        f"{_number(newest.value, kind)}{unit_text} on {newest.day:%A}"
        f" {newest.day.day} {newest.day:%B %Y}; the last {len(shown)} {days} had"
        f" {_number(min(values), kind)} to {_number(max(values), kind)} (median"
        f" {_number(median(values), kind)}); expected {_bounds(evaluation, kind)}."
    )


def _bounds(evaluation: Evaluation, kind: Kind) -> str:
    least, most = _number(evaluation.least, kind), _number(evaluation.most, kind)
    if evaluation.is_low:
        return f"at least {least}"
    if evaluation.is_high:
        return f"at most {most}"
    return f"{least} to {most}"


def _number(value: float, kind: Kind) -> str:
    return f"{100 * value:.2f} %" if kind.is_fraction else f"{value:,.0f}"


@dataclass(frozen=True)
class ComparedMetric:
    """A metric, and its evaluation against its history."""

    metric: Metric
    kind: Kind
    evaluation: Evaluation

    def __str__(self) -> str:
        name = self.metric.name
        return f"{name}: {explain(self.evaluation, self.kind, _unit(name))}"


def comparable(measured: Sequence[Metric]) -> list[Metric]:
    """Return the metrics of a table. If writes recorded failed shares, leave out those recorded
    by check-only runs.

    A write evaluates incoming rows; a check-only run evaluates published rows, which contain no
    rejected rows. Among its zeros, a normal share of rejected rows would be an anomaly.
    """
    writes = {metric.run_id for metric in measured if metric.name == RECORD_COUNT}
    if not writes:
        return list(measured)
    share = f"{FAILED_FRACTION}."
    return [
        metric
        for metric in measured
        if metric.run_id in writes or not metric.name.startswith(share)
    ]


def last_measured(measured: Sequence[Metric]) -> list[Metric]:
    """Return the last value of each metric. Metrics that the last run of their kind did not
    record are left out: their check or column was removed or renamed.

    :param measured: metrics of one table, oldest first.
    """
    last = {metric.name: metric for metric in measured}
    last_runs = {_base(metric): metric.run_id for metric in measured}
    return [metric for metric in last.values() if metric.run_id == last_runs[_base(metric)]]


def _base(metric: Metric) -> str:
    return metric.name.partition(".")[0]


def compare_metrics(
    newest: Iterable[Metric], past: Sequence[Metric], zone: tzinfo
) -> list[ComparedMetric]:
    """Compare the newest metrics of a table with their history; skip metrics with too little
    history.

    :param past: metrics of the same table, oldest first.
    :param zone: the time zone of the table's days.
    """
    compared = []
    for metric in newest:
        kind = kind_of(metric)
        if kind is None:
            continue
        past_points = []
        for other in past:
            is_alike = other.name == metric.name and kind_of(other) is kind
            if is_alike and other.measured_at < metric.measured_at:
                past_points.append(_point(other, zone))
        evaluation = evaluate(past_points, _point(metric, zone), kind, of_rows=metric.of_rows)
        if evaluation is not None:
            compared.append(ComparedMetric(metric, kind, evaluation))
    return compared


def kind_of(metric: Metric) -> Kind | None:
    """Return how a metric is compared, or None if it is not.

    Row counts of partition runs are not compared: such runs have one day or many.
    """
    name, _, of = metric.name.partition(".")
    if name in (FAILED_FRACTION, NULL_FRACTION) and of != NO_ANOMALY:
        return FRACTION
    if name == DAILY_GROWTH:
        return GROWTH
    return COUNT if name in (NR_ROWS, DISTINCT_COUNT) and metric.partition is None else None


def _point(metric: Metric, zone: tzinfo) -> Point:
    return Point(metric.measured_at.astimezone(zone).date(), metric.value)


def _unit(name: str) -> str:
    name, _, of = name.partition(".")
    return {
        NR_ROWS: "rows",
        DAILY_GROWTH: "rows more since midnight",
        FAILED_FRACTION: f"of the rows fail {of}",
        NULL_FRACTION: f"of the rows have no {of}",
        DISTINCT_COUNT: f"different {of}",
    }[name]


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
    """Return the run's metrics of a table, or the last of each if it did not write it."""
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
        },
    )
