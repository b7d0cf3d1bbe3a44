"""Coordinates of a time series in an SVG; the templates contain everything else."""

from dataclasses import dataclass

from lakehouse.iceberg.metadata.time_series import Series


@dataclass(frozen=True)
class Frame:
    """The area of a plot, in pixels from the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Line:
    """A line as an SVG path, and its points."""

    path: str
    points: tuple[tuple[float, float], ...]


def draw_line(
    series: Series, frame: Frame, bounds: tuple[float, float], *, is_step: bool
) -> Line:
    """Draw a series that is not empty.

    :param bounds: the values at the bottom and at the top of the frame.
    :param is_step: whether a value applies until the next one; otherwise points are joined.
    """
    begin, end = series[0][0], series[-1][0]
    low, high = bounds
    points = []
    for at, value in series:
        time_share = (at - begin) / (end - begin) if end > begin else 1.0
        value_share = (value - low) / (high - low) if high > low else 0.5
        x = frame.left + (frame.right - frame.left) * time_share
        y = frame.bottom - (frame.bottom - frame.top) * value_share
        points.append((round(x, 1), round(y, 1)))
    (first_x, first_y), *following = points
    steps = [f"M{first_x} {first_y}"]
    steps += [f"H{x} V{y}" if is_step else f"L{x} {y}" for x, y in following]
    return Line(" ".join(steps), tuple(points))
