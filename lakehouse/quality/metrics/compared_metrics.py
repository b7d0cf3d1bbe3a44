"""Select the metrics to compare with their history, and describe them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from lakehouse.iceberg.rules.column_profile import DISTINCT_COUNT, NULL_FRACTION
from lakehouse.quality.anomaly.detection import evaluate
from lakehouse.quality.anomaly.explanation import explain
from lakehouse.quality.anomaly.metric_series import (
    COUNT,
    FRACTION,
    GROWTH,
    Evaluation,
    Kind,
    Point,
)
from lakehouse.quality.metrics.metric import (
    DAILY_GROWTH,
    FAILED_FRACTION,
    NO_ANOMALY,
    NR_ROWS,
    RECORD_COUNT,
    Metric,
)


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
