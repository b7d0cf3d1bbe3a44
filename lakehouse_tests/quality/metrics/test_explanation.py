"""The words for a number, which a person can check against a calendar."""

from datetime import date

from lakehouse.quality.metrics.anomaly_check import explain
from lakehouse.quality.metrics.detection import COUNT, FRACTION, Point, evaluate
from lakehouse_tests.quality.metrics.series import daily

WEEK = [2400, 2420, 700, 300, 2410, 2430, 2440]
SERIES = daily(WEEK * 8)


def test_a_low_count_is_compared_with_the_same_weekday():
    found = evaluate(SERIES, Point(date(2026, 2, 26), 1204), COUNT)

    assert (
        explain(found, COUNT, "rows")
        == "1,204 rows on Thursday 26 February 2026; the last 8 Thursdays had 2,400 to 2,400"
        " (median 2,400); expected at least 2,199."
    )


def test_a_high_share_is_in_percent():
    found = evaluate(daily([0.02] * 20), Point(date(2026, 1, 21), 0.25), FRACTION)

    assert (
        explain(found, FRACTION, "of the rows")
        == "25.00 % of the rows on Wednesday 21 January 2026; the last 8 days with a value had"
        " 2.00 % to 2.00 % (median 2.00 %); expected at most 2.88 %."
    )
