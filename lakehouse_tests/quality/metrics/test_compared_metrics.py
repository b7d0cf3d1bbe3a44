"""Which metrics are compared with their own past, and how that is described."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lakehouse.quality.metrics.anomaly_check import (
    anomaly_result,
    comparable,
    compare_metrics,
    kind_of,
    last_measured,
)
from lakehouse.quality.metrics.detection import COUNT, FRACTION, GROWTH
from lakehouse.quality.metrics.metric import Metric

NOW = datetime(2026, 3, 3, 9, tzinfo=UTC)


def metric(name: str, value: float, at: datetime = NOW, **how: object) -> Metric:
    return Metric("silver.fruits", name, value, at, **how)


def past(name: str, *values: float, days: int = 40) -> list[Metric]:
    return [
        metric(name, values[ago % len(values)], NOW - timedelta(days=ago))
        for ago in range(days, 0, -1)
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nr_rows", COUNT),
        ("distinct_count.fruit", COUNT),
        ("daily_growth", GROWTH),
        ("failed_fraction.castable_id", FRACTION),
        ("null_fraction.berry", FRACTION),
        ("record_count", None),
        ("failed_fraction.no_anomaly", None),
    ],
)
def test_what_is_watched_and_how(name, kind):
    assert kind_of(metric(name, 1)) is kind


def test_a_check_that_was_renamed_is_not_judged_by_what_it_last_found():
    old, new = "failed_fraction.castable_id", "failed_fraction.id_is_a_number"
    before, after = NOW - timedelta(days=10), NOW - timedelta(days=9)
    measured = [
        *(replace(found, run_id=str(found.measured_at)) for found in past(old, 0.0)[:-10]),
        metric(old, 0.9, before, run_id="before"),
        metric("null_fraction.berry", 0.1, before, run_id="before"),
        metric(new, 0.0, after, run_id="after"),
    ]

    newest = last_measured(measured)

    assert {found.name for found in newest} == {"null_fraction.berry", new}


def test_checks_alone_count_where_nothing_else_was_measured():
    alone = [metric("failed_fraction.castable_id", 0.0, run_id="alone")]
    written = [metric("record_count", 4, run_id="write"), metric("nr_rows", 4, run_id="write")]

    assert comparable(alone) == alone
    assert comparable([*alone, *written]) == written


def test_each_number_that_is_outside_is_explained():
    newest = [
        metric("nr_rows", 1204),
        metric("null_fraction.berry", 0.5),
        metric("daily_growth", 2400),
    ]
    before = [
        *past("nr_rows", 2400, 2420),
        *past("null_fraction.berry", 0.0),
        *past("daily_growth", 2400, 2420),
    ]
    found = anomaly_result("silver.fruits", compare_metrics(newest, before, UTC))

    assert not found.passed
    assert found.severity.value == "WARN"
    assert found.description.startswith(
        "nr_rows: 1,204 rows on Tuesday 3 March 2026; the last 5 Tuesdays had 2,400 to "
    )
    assert (
        "null_fraction.berry: 50.00 % of the rows have no berry on Tuesday" in found.description
    )
    assert "daily_growth" not in found.description
    assert (found.metadata["anomalies"].value, found.metadata["compared_metrics"].value) == (
        2,
        3,
    )


def test_days_are_those_of_the_table():
    """At eight in the evening of Monday in UTC it is Tuesday in Kuala Lumpur."""
    zone = ZoneInfo("Asia/Kuala_Lumpur")
    evening = metric("nr_rows", 2, datetime(2026, 3, 2, 20, tzinfo=UTC))
    (found,) = compare_metrics([evening], past("nr_rows", 2400), zone)

    assert "on Tuesday 3 March" in str(found)
