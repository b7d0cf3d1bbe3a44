"""Coordinates of lines."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.site.pages import Frame, draw_line

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FRAME = Frame(10, 20, 110, 70)


def series(*values: float):
    return tuple((BEGIN + timedelta(days=day), value) for day, value in enumerate(values))


def test_points_are_between_the_bounds():
    line = draw_line(series(0, 5, 10), FRAME, (0, 10), is_step=False)
    assert line.points == ((10, 70), (60, 45), (110, 20))


@pytest.mark.parametrize(
    ("is_step", "path"), [(True, r"M\S+ \S+ H\S+ V\S+"), (False, r"M\S+ \S+ L\S+ \S+")]
)
def test_values_that_apply_until_the_next_are_steps(is_step, path):
    assert re.fullmatch(path, draw_line(series(1, 2), FRAME, (0, 2), is_step=is_step).path)


def test_a_single_point_is_at_the_end():
    assert draw_line(series(5), FRAME, (5, 5), is_step=True).points == ((110, 45),)
