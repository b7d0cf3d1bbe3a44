"""Series of numbers over time are joined and cut into intervals without a wrong number."""

from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.metadata.time_series import values_per_interval

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def series(*values: float, since: int = 0):
    return tuple(
        (BEGIN + timedelta(days=since + number), float(value))
        for number, value in enumerate(values)
    )


def test_what_is_kept_holds_until_the_next_value():
    end = BEGIN + timedelta(days=4)
    points = ((BEGIN + timedelta(days=1), 5.0), (end, 7.0))

    assert values_per_interval(points, BEGIN, end, 4, is_kept=True) == [None, 5.0, 5.0, 7.0]


def test_what_is_measured_is_of_its_moment_and_the_greatest_counts():
    end = BEGIN + timedelta(days=4)

    assert values_per_interval(series(0, 3, 1), BEGIN, end, 2, is_kept=False) == [3.0, 1.0]


def test_one_moment_is_a_span_too():
    assert values_per_interval(series(3), BEGIN, BEGIN, 2, is_kept=True) == [3.0, 3.0]
