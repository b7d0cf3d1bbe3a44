"""What is outside of what the past suggests, and that clean series are left in peace."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from lakehouse.quality.metrics.detection import (
    COUNT,
    FRACTION,
    GROWTH,
    Evaluation,
    Kind,
    Point,
    evaluate,
)
from lakehouse_tests.quality.metrics.series import DAYS, daily, weekly

SEEDS = range(200)


def newest(
    values: list[float], last: float, kind: Kind = COUNT, every: int = 1, **how
) -> Evaluation | None:
    *past, point = daily([*values, last], every=every)
    return evaluate(past, point, kind, **how)


@pytest.mark.long
def test_clean_series_with_a_weekly_shape_are_left_in_peace():
    """Each day of 200 series of 60 days is compared with those before it: 0.15 % of them warn, in
    6.5 % of the series.
    """
    warned = dict.fromkeys(SEEDS, 0)
    evaluated = 0
    for seed in SEEDS:
        series = weekly(seed)
        found = [evaluate(series[:at], series[at], COUNT) for at in range(1, DAYS)]
        evaluated += sum(one is not None for one in found)
        warned[seed] = sum(one is not None and one.is_anomaly for one in found)

    assert evaluated == 200 * (DAYS - 14)
    assert sum(warned.values()) <= 0.002 * evaluated
    assert sum(count > 0 for count in warned.values()) <= 0.08 * len(SEEDS)


@pytest.mark.parametrize("weekday", range(7))
def test_half_of_what_is_usual_is_found_on_any_weekday(weekday):
    found = 0
    for seed in SEEDS:
        series = weekly(seed)
        at = next(at for at in range(DAYS - 7, DAYS) if series[at].day.weekday() == weekday)
        half = replace(series[at], value=round(series[at].value / 2))
        found += evaluate(series[:at], half, COUNT).is_low

    assert found >= 0.95 * len(SEEDS)


def test_a_quiet_sunday_is_told_from_a_quiet_monday():
    week = [1000, 1010, 990, 1005, 400, 300, 1002]
    past = week * 8
    series = daily([*past, 1000, 1010, 990, 1005, 400, 300])
    sunday = replace(series[-1], value=300)
    monday = Point(sunday.day + timedelta(days=1), 300)

    assert sunday.day.weekday() == 1  # The series begins on a Thursday.
    assert not evaluate(series[:-1], sunday, COUNT).is_anomaly
    assert evaluate(series, monday, COUNT).is_low


def test_it_is_silent_until_there_is_enough_history():
    assert newest([1000] * 13, 1) is None
    assert newest([1000] * 14, 1).is_low


def test_weekdays_are_not_told_apart_before_there_are_enough_weeks():
    """The third weekend is quieter than the two before, and nothing is said."""
    busy_and_quiet = [1000, 1001, 300, 310, 999, 1000, 1002]
    found = newest([*busy_and_quiet, *busy_and_quiet, 1000, 1001], 250)

    assert not found.same_weekday
    assert not found.is_anomaly


@pytest.mark.parametrize("value", [0, 1, 7, 1000, 1e9])
def test_a_constant_is_no_anomaly_and_neither_is_one_more_or_less(value):
    past = [value] * 30
    for last in (value, value + 1, max(0, value - 1)):
        assert not newest(past, last).is_anomaly


def test_a_trend_is_no_anomaly():
    draw = random.Random(1)
    growing = [1000 * 1.03**at * draw.lognormvariate(0, 0.02) for at in range(57)]

    assert not newest(growing[:-1], growing[-1]).is_anomaly
    assert newest(growing[:-1], growing[-1] / 2).is_low


def test_a_lasting_change_is_the_new_normal_after_two_weeks():
    draw = random.Random(2)
    values = [1000 * draw.lognormvariate(0, 0.05) for _ in range(40)]
    doubled = [2000 * draw.lognormvariate(0, 0.05) for _ in range(14)]

    assert newest(values, doubled[0]).is_high
    assert not newest([*values, *doubled[:-1]], doubled[-1]).is_anomaly


def test_a_share_is_only_told_where_it_grew():
    past = [0.02, 0.021, 0.019, 0.02] * 8

    assert newest(past, 0.2, FRACTION).is_high
    assert not newest(past, 0.0, FRACTION).is_anomaly


def test_a_share_of_few_rows_is_uncertain():
    assert not newest([0.0] * 30, 0.5, FRACTION, of_rows=2).is_anomaly
    assert newest([0.0] * 30, 0.5, FRACTION, of_rows=2000).is_high


def test_growth_that_is_not_over_is_only_told_where_the_table_shrank():
    past = [1000, 1010, 990, 1005] * 8

    assert not newest(past, 3, GROWTH).is_anomaly
    assert newest(past, -500, GROWTH).is_low
    assert newest(past, 5000, GROWTH).is_high


def test_the_last_value_of_a_day_counts_for_it():
    series = [
        twice for point in daily([1000] * 30) for twice in (replace(point, value=1), point)
    ]

    assert evaluate(series, Point(series[-1].day + timedelta(days=1), 1), COUNT).is_low
