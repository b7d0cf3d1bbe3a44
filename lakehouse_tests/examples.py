"""How many examples of a property are tried."""

import os


def examples(few: int, many: int) -> int:
    """Return how many: few where each takes Spark, or much of the processor; in `make soak` many."""
    return many if os.environ.get("SOAK") else few
