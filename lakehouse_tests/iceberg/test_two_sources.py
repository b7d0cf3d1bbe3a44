"""Whatever happens to two sources, a table of both has what plain Python makes of the story: as a
property, over random tables and stories.
"""

from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.examples import examples
from lakehouse_tests.iceberg.two_source_model import (
    BLOCKS,
    NO_DAY,
    AddColumn,
    Compute,
    Delete,
    Deliver,
    Follower,
    Reject,
    Rollback,
    RollbackTable,
    Shape,
    Step,
)
from lakehouse_tests.iceberg.two_sources import TwoSources

pytestmark = [pytest.mark.spark, whatever_the_catalog, pytest.mark.long]

SOURCES = st.integers(0, 1)
ROWS = st.lists(
    st.tuples(
        st.sampled_from("aabbc"),
        st.sampled_from(["1", "2", "3", "4", "bad"]),
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
)
STEPS = st.one_of(
    *[DELIVERIES] * 6,
    *[RUNS] * 6,
    *[st.builds(Reject, SOURCES, st.integers(0, 3))] * 2,
    st.builds(Delete, SOURCES, st.sampled_from("abc")),
    st.builds(Rollback, SOURCES, st.integers(1, 2)),
    st.builds(RollbackTable, st.integers(1, 2)),
    st.builds(AddColumn, SOURCES),
)
BEGINNINGS = st.tuples(
    st.builds(Deliver, st.just(0), FILES, ROWS),
    st.builds(Deliver, st.just(1), FILES, ROWS),
    st.just(Compute(follows=True)),
)
SHAPES = st.sampled_from(get_args(Shape))
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


@pytest.mark.parametrize(
    ("shape", "follower"),
    [
        ("partitions", "days"),
        pytest.param("merge", "keys", marks=pytest.mark.soak),
        pytest.param("beside latest", "keys", marks=pytest.mark.soak),
        pytest.param("append", "keys", marks=pytest.mark.soak),
        ("last file", "days"),
        pytest.param("versions", "keys", marks=pytest.mark.soak),
        pytest.param("overwrite", "days", marks=pytest.mark.soak),
    ],
)
def test_a_table_of_two_sources_has_what_the_model_has(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, shape: Shape, follower: Follower
) -> None:
    lakehouse = TwoSources(engine, shape, follower)
    lakehouse.play(STORY, monkeypatch)
    lakehouse.check()


@pytest.mark.soak
@settings(
    max_examples=examples(10, 100), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(SHAPES, FOLLOWERS, BEGINNINGS, st.lists(STEPS, min_size=2, max_size=9))
def test_a_table_of_two_sources_has_what_the_model_has_in_any_story(
    engine: Engine,
    shape: Shape,
    follower: Follower,
    beginning: tuple[Step, ...],
    steps: list[Step],
) -> None:
    lakehouse = TwoSources(engine, shape, follower)
    with pytest.MonkeyPatch.context() as patch:
        lakehouse.play([*beginning, *steps], patch)
    lakehouse.check()
