"""The customers and merchants of a generation, with skewed activity and customer habits."""

from dataclasses import dataclass

import numpy as np

from lakehouse.sample_data.bnpl.arguments import Arguments

CURRENCIES = ("MYR", "SGD", "IDR", "THB", "PHP")
PRICE_LEVELS = (1.0, 0.32, 3500.0, 7.8, 12.9)
"""Relative price levels by currency; one ringgit is 1."""
REGIONS = {
    "Kuala Lumpur": "MYR",
    "Selangor": "MYR",
    "Penang": "MYR",
    "Johor": "MYR",
    "Sabah": "MYR",
    "Sarawak": "MYR",
    "Singapore": "SGD",
    "Jakarta": "IDR",
    "Bangkok": "THB",
    "Manila": "PHP",
}
REGION_WEIGHTS = (0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1, 0.1, 0.05, 0.05)
CATEGORIES = {
    "electronics": 480.0,
    "fashion": 130.0,
    "groceries": 60.0,
    "health": 90.0,
    "home": 240.0,
    "sports": 160.0,
    "toys": 80.0,
    "travel": 650.0,
}
"""The median price in ringgit by merchant category."""
PAYMENT_METHODS = ("card", "wallet", "bank_transfer")
PAYMENT_METHOD_WEIGHTS = (0.5, 0.35, 0.15)

MERCHANTS = 2_000
MERCHANT_EXPONENT = 1.05
"""The exponent of Zipf's law: a merchant of rank r sells in proportion to 1 / r**exponent."""
ROWS_PER_CUSTOMER = 8
FEWEST_CUSTOMERS = 20
FIRST_CUSTOMER_ID = 1_000_001


@dataclass(frozen=True)
class World:
    """Customers and merchants by index; weights have the sum 1."""

    customer_ids: np.ndarray
    customer_weights: np.ndarray
    customer_regions: np.ndarray
    customer_methods: np.ndarray
    """The customer's preferred method."""
    merchant_ids: tuple[str, ...]
    merchant_weights: np.ndarray
    merchant_categories: np.ndarray


def make_world(arguments: Arguments, rng: np.random.Generator) -> World:
    """Generate customers in proportion to the number of transactions, and the merchants."""
    customers = max(FEWEST_CUSTOMERS, arguments.total_rows // ROWS_PER_CUSTOMER)
    # A long tail: most customers buy rarely, some every week.
    activity = rng.gamma(1.2, size=customers) + 0.02
    ranks = np.arange(1, MERCHANTS + 1) ** -MERCHANT_EXPONENT
    numbers = rng.permutation(MERCHANTS) + 1
    return World(
        customer_ids=FIRST_CUSTOMER_ID + np.arange(customers),
        customer_weights=activity / activity.sum(),
        customer_regions=rng.choice(len(REGIONS), size=customers, p=REGION_WEIGHTS),
        customer_methods=rng.choice(
            len(PAYMENT_METHODS), size=customers, p=PAYMENT_METHOD_WEIGHTS
        ),
        merchant_ids=tuple(f"M{number:05}" for number in numbers),
        merchant_weights=ranks / ranks.sum(),
        merchant_categories=rng.integers(len(CATEGORIES), size=MERCHANTS),
    )
