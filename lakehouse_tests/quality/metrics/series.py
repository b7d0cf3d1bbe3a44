"""Series of daily counts with the shape of a week, the same for the same seed."""

import random
from collections.abc import Sequence
from datetime import date, timedelta

from lakehouse.quality.metrics.detection import Point

FIRST = date(2026, 1, 1)
DAYS = 60


def weekly(seed: int, *, noise: float | None = None, days: int = DAYS) -> list[Point]:
    draw = random.Random(seed)
    size = draw.choice([300, 2_000, 50_000, 1_000_000])
    spread = draw.uniform(0.02, 0.1) if noise is None else noise
    week = [draw.uniform(0.8, 1.2) for _ in range(5)] + [
        draw.uniform(0.2, 0.7) for _ in range(2)
    ]
    trend = draw.uniform(-0.005, 0.01)
    return [
        Point(
            day,
            round(
                size * week[day.weekday()] * (1 + trend) ** at * draw.lognormvariate(0, spread)
            ),
        )
        for at, day in enumerate(FIRST + timedelta(days=at) for at in range(days))
    ]


def daily(values: Sequence[float], *, every: int = 1) -> list[Point]:
    return [Point(FIRST + timedelta(days=every * at), value) for at, value in enumerate(values)]
