"""How many examples of a property run, and which repetitions of a test, by tier."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest


def examples(few: int, many: int) -> int:
    """Return how many: few where each takes Spark, or much of the processor; in `make soak` many."""
    return many if os.environ.get("SOAK") else few


def repeated(
    values: Iterable[Any],
    *,
    tried: Collection[Any],
    tier: str | None = None,
    rest: str = "soak",
) -> list[Any]:
    """Return the parameters of a test.

    :param tried: the values that run in `tier`, by default the tier of the test.
    :param rest: the tier of all other values.
    """
    values = list(values)
    assert all(value in values for value in tried), f"{tried} are not among {values}"
    tried_marks = getattr(pytest.mark, tier) if tier else ()
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=tried_marks if value in tried else getattr(pytest.mark, rest),
        )
        for value in values
    ]


glue_in_test_all = pytest.mark.parametrize(
    "engine", repeated(["embedded", "glue"], tried=["embedded"], rest="long"), indirect=True
)
"""For a test on both catalogs whose code path another test runs on Glue in `make test`."""
