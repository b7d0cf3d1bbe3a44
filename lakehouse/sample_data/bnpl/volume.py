"""The number of transactions per day: more at weekends and around payday."""

from datetime import date, timedelta

import numpy as np

from lakehouse.sample_data.bnpl.arguments import Arguments

WEEKDAY_FACTORS = (0.90, 0.90, 0.95, 1.00, 1.15, 1.40, 1.35)
"""Monday to Sunday."""
PAYDAY_FACTOR = 1.3
FIRST_PAYDAY = 25
"""Paydays last from this day to the first of the next month."""
NOISE = 0.03


def is_payday(day: date) -> bool:
    """Return whether wages have just been paid."""
    return day.day >= FIRST_PAYDAY or day.day == 1


def transactions_by_day(
    arguments: Arguments, total: int, rng: np.random.Generator
) -> np.ndarray:
    """Distribute a total over the days; each day has at least one if possible."""
    days = [arguments.start + timedelta(days=day) for day in range(arguments.days)]
    factors = [
        WEEKDAY_FACTORS[day.weekday()] * (PAYDAY_FACTOR if is_payday(day) else 1.0)
        for day in days
    ]
    weights = np.array(factors) * rng.normal(1.0, NOISE, size=len(days)).clip(0.8, 1.2)
    least = min(1, total // len(days))
    return least + _shares(total - least * len(days), weights / weights.sum())


def _shares(total: int, weights: np.ndarray) -> np.ndarray:
    """Round shares to integers with the same total, by largest remainders."""
    exact = total * weights
    shares: np.ndarray = np.floor(exact).astype(np.int64)
    largest = np.argsort(shares - exact, kind="stable")[: total - int(shares.sum())]
    shares[largest] += 1
    return shares
