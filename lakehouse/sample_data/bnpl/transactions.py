"""Generate the first versions of transactions as numbers and codes in a DataFrame.

Columns: `transaction` (the id), `customer`, `merchant`, `currency`, `installments`, `method`
and `status` (indexes; a method of -1 means none), `cents`, `day` (the transaction date, in days
since 1970), `created` (in seconds since 1970, local time), `file` (the index of the day in
whose file the row arrives) and `defect`.
"""

from datetime import date, timedelta

import numpy as np
import pandas as pd
from numpy.random import Generator

from lakehouse.sample_data.bnpl.arguments import Arguments
from lakehouse.sample_data.bnpl.world import (
    CATEGORIES,
    CURRENCIES,
    PAYMENT_METHODS,
    PRICE_LEVELS,
    REGIONS,
    World,
)

WEEKDAY_FACTORS = (0.90, 0.90, 0.95, 1.00, 1.15, 1.40, 1.35)
"""Monday to Sunday."""
PAYDAY_FACTOR = 1.3
FIRST_PAYDAY = 25
"""Paydays last from this day to the first of the next month."""
NOISE = 0.03
INSTALLMENTS = (1, 3, 6, 12)
STATUSES = ("PENDING", "APPROVED", "DECLINED", "REFUNDED")
STATUS_WEIGHTS = (0.15, 0.70, 0.12, 0.03)
DAY_SECONDS = 86_400
MIDNIGHT_SHARE = 0.04
"""The share of transactions within five minutes of 23:30 or 00:30, whose dates differ between
UTC and local time.
"""
FOREIGN_SHARE = 0.03
"""The share of transactions in another currency than the customer's own."""
PREFERRED_SHARE = 0.7
"""The share of transactions with the customer's preferred method."""
LARGEST_CENTS = 2_000_000_000
_HOUR_WEIGHTS = np.array(
    [1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 9, 8, 6, 6, 6, 7, 8, 10, 11, 10, 7, 3], dtype=float
)
_FIRST_ID = 2**53
_IDS_PER_SEED = 10**16
_IDS_PER_DAY = 10**10
_SEEDS = 512


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


def make_transactions(
    arguments: Arguments, count: int, world: World, rng: Generator
) -> pd.DataFrame:
    """Generate the first versions of transactions, in the order of their days."""
    by_day = transactions_by_day(arguments, count, rng)
    file = np.repeat(np.arange(arguments.days), by_day)
    customer = rng.choice(len(world.customer_ids), size=count, p=world.customer_weights)
    merchant = rng.choice(len(world.merchant_ids), size=count, p=world.merchant_weights)
    ringgit = _prices(merchant, world, rng)
    currency = _currencies(customer, world, rng)
    cents = (ringgit * 100 * np.array(PRICE_LEVELS)[currency]).astype(np.int64)
    day = arguments.start_day + file
    return pd.DataFrame(
        {
            "transaction": _ids(arguments, file, by_day),
            "customer": customer.astype(np.int32),
            "merchant": merchant.astype(np.int16),
            "cents": cents.clip(1, LARGEST_CENTS),
            "currency": currency.astype(np.int8),
            "installments": _installments(ringgit, rng),
            "method": _methods(arguments, file, customer, world, rng),
            "status": rng.choice(len(STATUSES), size=count, p=STATUS_WEIGHTS).astype(np.int8),
            "day": day.astype(np.int32),
            "created": day * DAY_SECONDS + _seconds(count, rng),
            "file": file.astype(np.int32),
            "defect": np.zeros(count, dtype=np.int8),
        }
    )


def _ids(arguments: Arguments, file: np.ndarray, by_day: np.ndarray) -> np.ndarray:
    """Return ids above 2^53, which floats cannot distinguish; seeds have separate ranges."""
    first_of_day = np.cumsum(by_day) - by_day
    number = np.arange(len(file)) - first_of_day[file]
    seed = _FIRST_ID + arguments.seed % _SEEDS * _IDS_PER_SEED
    ids: np.ndarray = seed + (arguments.start_day + file) * _IDS_PER_DAY + number
    return ids


def _prices(merchant: np.ndarray, world: World, rng: Generator) -> np.ndarray:
    medians = np.array(list(CATEGORIES.values()))[world.merchant_categories[merchant]]
    prices: np.ndarray = medians * rng.lognormal(0.0, 0.7, size=len(merchant))
    return prices


def _currencies(customer: np.ndarray, world: World, rng: Generator) -> np.ndarray:
    of_region = np.array([CURRENCIES.index(currency) for currency in REGIONS.values()])
    own = of_region[world.customer_regions[customer]]
    foreign = rng.integers(len(CURRENCIES), size=len(customer))
    return np.where(rng.random(len(customer)) < FOREIGN_SHARE, foreign, own)


def _installments(ringgit: np.ndarray, rng: Generator) -> np.ndarray:
    """Return the number of instalments, larger for higher prices."""
    inclination = np.log(ringgit / 120.0) + rng.normal(0.0, 0.8, size=len(ringgit))
    return np.digitize(inclination, [-0.2, 0.9, 1.9]).astype(np.int8)


def _methods(
    arguments: Arguments,
    file: np.ndarray,
    customer: np.ndarray,
    world: World,
    rng: Generator,
) -> np.ndarray:
    """Return payment methods; -1 before the column was introduced."""
    chosen = np.where(
        rng.random(len(customer)) < PREFERRED_SHARE,
        world.customer_methods[customer],
        rng.integers(len(PAYMENT_METHODS), size=len(customer)),
    )
    return np.where(file < arguments.first_day_with_method, -1, chosen).astype(np.int8)


def _seconds(count: int, rng: Generator) -> np.ndarray:
    """Return times of day in seconds: most in the evening, some around 23:30 and 00:30."""
    hours = rng.choice(24, size=count, p=_HOUR_WEIGHTS / _HOUR_WEIGHTS.sum())
    usual = hours * 3600 + rng.integers(3600, size=count)
    half_past = np.where(rng.random(count) < 0.5, 23 * 3600, 0) + 30 * 60
    around = half_past + rng.integers(-300, 301, size=count)
    return np.where(rng.random(count) < MIDNIGHT_SHARE, around, usual)
