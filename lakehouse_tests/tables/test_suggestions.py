"""The near name of one that is not there."""

import pytest

from lakehouse.tables.quoting import meant_name, near_name

pytestmark = pytest.mark.unit

KNOWN = ["bronze.raw_fruits", "silver.fruits", "gold.customer_profiles"]


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("silver.fruit", "silver.fruits"),
        ("SILVER.FRUITS", "silver.fruits"),
        ("fruits", "silver.fruits"),
        ("customer_profile", "gold.customer_profiles"),
        ("monitoring.x", None),
        ("", None),
    ],
)
def test_the_near_name_is_found_also_without_its_layer(typed: str, near: str | None) -> None:
    assert near_name(typed, KNOWN) == near


def test_where_none_is_near_they_are_listed_in_their_order() -> None:
    assert meant_name("x", KNOWN) == f"expected one of {', '.join(sorted(KNOWN))}."
    assert meant_name("x", []) == "there is none yet."
