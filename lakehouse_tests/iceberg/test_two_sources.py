"""A table of two sources has what plain Python makes of any story: over random tables."""

from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.two_source_model import (
    BLOCKS,
    NO_DAY,
    AddColumn,
    Clear,
    Compute,
    Delete,
    Deliver,
    Follower,
    Kind,
    Reject,
    Rollback,
    RollbackTable,
    RowLevels,
    Shape,
    Step,
)
from lakehouse_tests.iceberg.two_sources import TwoSources

pytestmark = [pytest.mark.spark, whatever_the_catalog, pytest.mark.long]

SOURCES = st.integers(0, 1)
ROWS = st.lists(
    st.tuples(
        st.sampled_from("aabbc"),
        st.sampled_from(["1", "2", "3", "bad", "mend"]),
        st.sampled_from([*range(1, 6)] * 4 + [BLOCKS]),
        st.integers(0, NO_DAY),
    ),
    min_size=1,
    max_size=4,
).map(tuple)
FILES = st.sampled_from(["1.csv", "2.csv", "3.csv"])
DELIVERIES = st.builds(Deliver, SOURCES, FILES, ROWS)
RUNS = st.builds(
    Compute,
    days=st.none() | st.sets(st.integers(0, 2), min_size=1, max_size=2).map(tuple),
    full_recompute=st.sampled_from([False, False, False, True]),
    killed=st.sampled_from([False, False, False, True]),
    twice=st.sampled_from([False, False, False, True]),
    follows=st.booleans(),
    replays=st.sampled_from([False, False, False, True]),
)
STEPS = st.one_of(
    *[DELIVERIES] * 6,
    *[RUNS] * 6,
    *[st.builds(Reject, SOURCES, st.integers(0, 3))] * 2,
    st.builds(Delete, SOURCES, st.sampled_from("abc")),
    st.builds(Rollback, SOURCES, st.integers(1, 2)),
    st.builds(RollbackTable, st.integers(1, 2)),
    st.builds(AddColumn, SOURCES),
    st.builds(Clear, st.booleans()),
)
BEGINNINGS = st.tuples(
    st.builds(Deliver, st.just(0), FILES, ROWS),
    st.builds(Deliver, st.just(1), FILES, ROWS),
    st.just(Compute(follows=True)),
)
SHAPES = st.sampled_from(get_args(Shape))
KINDS = st.sampled_from(get_args(Kind))
ROW_LEVELS = st.sampled_from(get_args(RowLevels))
FOLLOWERS = st.sampled_from(get_args(Follower))

STORY: list[Step] = [
    Deliver(0, "1.csv", (("a", "1", 1, 0), ("b", "bad", 2, 1), ("c", "3", 1, 2))),
    Deliver(1, "1.csv", (("b", "1", 1, 1), ("d", "2", 3, NO_DAY))),
    Compute(follows=True),
    Deliver(0, "2.csv", (("d", "2", BLOCKS, 0),)),
    Deliver(0, "3.csv", (("b", "2", 2, 1),)),
    Compute(),
    Deliver(0, "4.csv", (("e", "1", 1, 1),)),
    Compute(),
    Reject(0, 1),
    AddColumn(1),
    Deliver(1, "2.csv", (("a", "3", 3, 2), ("c", "1", 5, 0))),
    Compute(follows=True),
    Reject(1, 1),
]
"""One day is blocked while another is computed twice; a source takes the place of what the other
gave, and loses it.
"""


CORRECTED: list[Step] = [
    Deliver(0, "1.csv", (("a", "1", 1, 0), ("b", "mend", 1, 1), ("c", "bad", 1, 1))),
    Deliver(1, "1.csv", (("d", "mend", 1, NO_DAY), ("e", "2", 1, 2), ("f", "mend", 1, 0))),
    Compute(),
    Deliver(0, "1.csv", (("a", "mend", 2, 0), ("b", "2", 2, 1), ("e", "bad", 2, 2))),
    Compute(killed=True),
    Reject(1, 0),
]
"""Two contents of one file name, a killed run, and newer versions, which the function rejects
until it is corrected.
"""
CLEARED: list[Step] = [
    *CORRECTED[:3],
    Clear(killed=True),
    Clear(),
    CORRECTED[3],
    Compute(full_recompute=True),
    Compute(replays=True),
]
"""The first refused rows are cleared, at the second try, and not refused once more."""
FIRST: list[Step] = [
    Deliver(0, "1.csv", (("b", "mend", 3, NO_DAY),)),
    Deliver(1, "1.csv", (("a", "mend", 1, 1), ("a", "3", 1, 1))),
    Compute(),
    Rollback(0, 1),
]
"""A refused row, which the corrected function accepts, and the row that the table has of its key."""


@pytest.mark.parametrize(
    ("story", "shape", "follower", "kind", "row_levels"),
    repeated(
        [
            ("blocked", "partitions", "days", "date", "whole files"),
            ("blocked", "last file", "days", "date", "delete files"),
            ("corrected", "versions", "none", "timestamp", "whole files"),
            ("corrected", "merge", "keys", "string", "delete files"),
            ("cleared", "merge", "none", "int", "both"),
            ("blocked", "merge", "keys", "date", "both"),
            ("blocked", "beside latest", "keys", "int", "whole files"),
            ("blocked", "append", "keys", "date", "delete files"),
            ("blocked", "versions", "keys", "string", "delete files"),
            ("blocked", "overwrite", "days", "date", "whole files"),
            ("corrected", "partitions", "none", "int", "both"),
            ("corrected", "newest of all", "none", "string", "delete files"),
            ("cleared", "partitions", "none", "string", "whole files"),
            ("cleared", "overwrite", "none", "timestamp", "whole files"),
            ("first", "append", "none", "string", "whole files"),
        ],
        tried=[
            ("blocked", "partitions", "days", "date", "whole files"),
            ("blocked", "last file", "days", "date", "delete files"),
            ("corrected", "versions", "none", "timestamp", "whole files"),
            ("corrected", "merge", "keys", "string", "delete files"),
            ("cleared", "merge", "none", "int", "both"),
            ("first", "append", "none", "string", "whole files"),
        ],
    ),
)
def test_a_table_of_two_sources_has_what_the_model_has(
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    story: str,
    shape: Shape,
    follower: Follower,
    kind: Kind,
    row_levels: RowLevels,
) -> None:
    steps = {"blocked": STORY, "corrected": CORRECTED, "cleared": CLEARED, "first": FIRST}[
        story
    ]
    lakehouse = TwoSources(engine, shape, follower, kind, row_levels)
    lakehouse.play(steps, monkeypatch, corrects=story in ("corrected", "first"))
    lakehouse.check()


@pytest.mark.soak
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    # A table is not read by partitions of hours.
    st.tuples(SHAPES, FOLLOWERS, KINDS, ROW_LEVELS).filter(
        lambda tables: tables[1] == "none" or tables[2] != "timestamp"
    ),
    BEGINNINGS,
    st.lists(STEPS, min_size=2, max_size=9),
    st.booleans(),
)
def test_a_table_of_two_sources_has_what_the_model_has_in_any_story(
    engine: Engine,
    tables: tuple[Shape, Follower, Kind, RowLevels],
    beginning: tuple[Step, ...],
    steps: list[Step],
    corrects: bool,
) -> None:
    lakehouse = TwoSources(engine, *tables)
    with pytest.MonkeyPatch.context() as patch:
        lakehouse.play([*beginning, *steps], patch, corrects=corrects)
    lakehouse.check()
