"""Which metrics are compared with their own past, and what they are called in a sentence;
pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from lakehouse.iceberg.rules.column_profile import DISTINCT_COUNT, NULL_FRACTION
from lakehouse.quality.anomaly.detection import evaluate
from lakehouse.quality.anomaly.explanation import explained
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
    Metric,
)


@dataclass(frozen=True)
class Watched:
    """A metric that was judged."""

    metric: Metric
    kind: Kind
    evaluation: Evaluation

    def __str__(self) -> str:
        return (
            f"{self.metric.name}:"
            f" {explained(self.evaluation, self.kind, _unit(self.metric.name))}"
        )


def watch(newest: Iterable[Metric], past: Sequence[Metric], zone: tzinfo) -> list[Watched]:
    """Judge the newest metrics of a table by those before; what is not watched, or has too
    little past, is left out.

    :param past: of the same table, oldest first.
    :param zone: where the table's days begin.
    """
    found = []
    for metric in newest:
        kind = kind_of(metric)
        if kind is None:
            continue
        alike = [
            other for other in past if other.name == metric.name and kind_of(other) is kind
        ]
        points = [
            _point(other, zone) for other in alike if other.measured_at < metric.measured_at
        ]
        evaluation = evaluate(points, _point(metric, zone), kind, of_rows=metric.of_rows)
        if evaluation is not None:
            found.append(Watched(metric, kind, evaluation))
    return found


def kind_of(metric: Metric) -> Kind | None:
    """Return how a metric is compared; None of one that is not.

    Counts of runs for some partitions are not: such runs are of one day or of many.
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
