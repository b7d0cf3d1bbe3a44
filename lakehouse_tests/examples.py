"""How many examples of a property are tried, and which repetitions of a test."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest


def examples(few: int, many: int) -> int:
    """Return how many: few where each takes Spark, or much of the processor; in `make soak` many."""
    return many if os.environ.get("SOAK") else few


def repeated(values: Iterable[Any], *, tried: Collection[Any]) -> list[Any]:
    """Return what a test is repeated for: all but those that are tried wait for `make soak`."""
    values = list(values)
    assert all(one in values for one in tried), f"{tried} are not among {values}"
    return [pytest.param(one, marks=[] if one in tried else pytest.mark.soak) for one in values]
