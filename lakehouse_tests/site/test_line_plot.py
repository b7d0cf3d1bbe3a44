"""Lines of plots are where their numbers are."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.site.line_plot import HEIGHT, WIDTH, line_plot, sparkline

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def series(*values: float, hours: int = 24):
    return tuple(
        (BEGIN + timedelta(hours=hours * number), value) for number, value in enumerate(values)
    )


def test_the_axis_begins_at_zero_and_ends_at_a_round_number():
    plot = line_plot(series(3, 155), "{:g}".format, is_kept=True)

    assert [tick.text for tick in plot.values] == ["0", "100", "200"]


def test_sizes_end_at_a_round_number_of_their_unit():
    plot = line_plot(series(5000), "{:g}".format, is_kept=True, step=1024)

    assert [tick.text for tick in plot.values] == ["0", "3072", "6144"]


def test_what_is_kept_is_drawn_in_steps_and_what_is_measured_is_joined():
    kept = line_plot(series(1, 2), str, is_kept=True).line
    joined = line_plot(series(1, 2), str, is_kept=False).line

    assert re.fullmatch(r"M\S+ \S+ H\S+ V\S+", kept)
    assert re.fullmatch(r"M\S+ \S+ L\S+ \S+", joined)


@pytest.mark.parametrize("values", [(), (0,), (0, 0), (5,), (1e12, 1), (0.001, 0.5)])
def test_any_series_stays_in_the_frame(values):
    plot = line_plot(series(*values), str, is_kept=False)

    assert len(plot.dots) == len(values)
    for x, y in plot.dots:
        assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT


def test_times_are_days_or_minutes():
    days = line_plot(series(1, 2, 3, 4), str, is_kept=True).times
    hours = line_plot(series(1, 2, hours=1), str, is_kept=True).times

    assert [tick.text for tick in days] == ["2026-01-01", "2026-01-04"]
    assert [tick.text for tick in hours] == ["01-01 00:00", "01-01 01:00"]


def test_a_sparkline_ends_at_its_last_value():
    path, end = sparkline(series(1, 3, 2), is_kept=False)

    assert end is not None
    assert path.endswith(f"L{end[0]} {end[1]}")
    assert sparkline((), is_kept=True) == ("", None)
