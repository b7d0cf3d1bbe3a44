"""Each delivered row is in exactly one place: a property over random tables and stories."""

from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.stories import (
    LEFT_OUT,
    Clear,
    Compute,
    Deliver,
    Kind,
    Lakehouse,
    Reject,
    Replay,
    RowLevels,
    Shape,
    Step,
)

pytestmark = pytest.mark.spark

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None, LEFT_OUT]),
        st.sampled_from(["1", "2", "bad", "mend"]),
        st.integers(1, 3),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=4,
).map(tuple)
STEPS = st.one_of(
    st.builds(Deliver, st.sampled_from(["x.csv", "y.csv", "z.csv"]), ROWS),
    st.builds(
        Compute, resolved=st.booleans(), full_recompute=st.booleans(), killed=st.booleans()
    ),
    st.builds(Reject, st.integers(0, 5)),
    st.builds(Replay, killed=st.booleans()),
    st.builds(Clear, killed=st.booleans()),
)
ROW_LEVELS = st.sampled_from(list(get_args(RowLevels)))
SHAPES = st.sampled_from(list(get_args(Shape)))
KINDS = st.sampled_from(["date", "timestamp", "string", "int"])

FIRST = Deliver(
    "x.csv",
    (
        ("a", "1", 1, 0),
        ("b", "bad", 1, 1),
        ("c", "mend", 1, 1),
        (LEFT_OUT, "1", 1, 2),
        ("e", "1", 1, 3),
        (None, "1", 1, 1),
    ),
)
SECOND = Deliver(
    "x.csv",
    (
        ("a", "2", 2, 2),
        ("b", "2", 2, 1),
        ("b", "bad", 3, 0),
        ("d", "1", 1, 0),
        (None, "1", 2, 2),
    ),
)
STORY: list[Step] = [
    FIRST,
    Compute(),
    SECOND,
    FIRST,
    Compute(killed=True),
    Compute(resolved=True, full_recompute=True),
    Reject(1),
]
"""Two contents of one file name, a killed run, a changed function and a rejection."""

UNDONE: list[Step] = [
    Deliver("x.csv", (("a", "bad", 1, 0),)),
    Compute(),
    Deliver("y.csv", (("a", "2", 2, 0),)),
    Compute(killed=True),
    Compute(resolved=True),
]
"""A killed run of a newer version, which the next function rejects."""

REPLAYED: list[Step] = [FIRST, Compute(), SECOND, Compute(), Replay(killed=True), Replay()]
"""The function is corrected, and the refused rows are judged again, at the second try."""

CLEARED: list[Step] = [
    FIRST,
    Compute(),
    Clear(killed=True),
    Clear(),
    SECOND,
    Compute(full_recompute=True),
    Replay(),
]
"""The first refused rows are cleared, at the second try, and refused once more."""


def check(lakehouse: Lakehouse) -> None:
    """See that each row of the source is in one place, and that nothing else is anywhere."""
    found = lakehouse.fates()
    source, table, held = found["source"], found["table"], found["quarantine"]
    assert not table & held, "in the table and in the quarantine"
    assert table | held <= source, "in a place, and not in the source any more"
    rest = {row for row in source - table - held if row[3] != LEFT_OUT}
    rest = {row for row in rest if row[:3] not in found["cleared"]}
    lost = {row for row in rest if not is_superseded(lakehouse, row, table)}
    assert not lost, "nowhere"


def is_superseded(lakehouse: Lakehouse, row: tuple, table: set[tuple]) -> bool:
    """Whether another row of its key replaces it: the newest version or last merged row."""
    rivals = [found for found in table if found[3] == row[3]]
    if lakehouse.table.versions:
        return any(_age(found) >= _age(row) for found in rivals)
    return lakehouse.shape == "merge" and bool(rivals)


def _age(row: tuple) -> tuple:
    file, sha256, number, _, version = row
    return version, file, number, sha256


STORIES = {"undone": UNDONE, "replayed": REPLAYED, "cleared": CLEARED}


@pytest.mark.long
@pytest.mark.parametrize(
    ("story", "shape", "kind"),
    repeated(
        [
            ("undone", "versions", "string"),
            ("undone", "merge", "string"),
            ("replayed", "versions", "date"),
            ("replayed", "append", "int"),
            ("replayed", "partitions", "timestamp"),
            ("replayed", "newest", "int"),
            ("replayed", "merge", "string"),
            ("replayed", "overwrite", "date"),
            ("replayed", "newest of all", "string"),
            ("cleared", "merge", "string"),
            ("cleared", "partitions", "date"),
            ("cleared", "newest", "int"),
            ("cleared", "append", "int"),
            ("cleared", "overwrite", "date"),
            ("cleared", "versions", "timestamp"),
        ],
        tried=[
            ("undone", "versions", "string"),
            ("undone", "merge", "string"),
            ("replayed", "versions", "date"),
            ("cleared", "merge", "string"),
        ],
    ),
)
def test_each_row_is_in_one_place_after_a_story(
    embedded_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    story: str,
    shape: Shape,
    kind: Kind,
) -> None:
    lakehouse = Lakehouse(embedded_engine, shape, kind)
    lakehouse.play(STORIES[story], monkeypatch)
    check(lakehouse)
    found = lakehouse.fates()
    assert len(found["quarantine"]) == 2 or story != "undone"
    assert not {row for row in found["quarantine"] if row[:3] in found["cleared"]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "kind", "row_levels"),
    repeated(
        [
            ("merge", "string", "whole files"),
            ("merge", "string", "delete files"),
            ("merge", "string", "both"),
            ("newest", "int", "whole files"),
            ("newest", "int", "delete files"),
            ("newest", "int", "both"),
            # Their quarantines are merged.
            ("append", "int", "delete files"),
            ("overwrite", "date", "delete files"),
            ("partitions", "string", "both"),
            ("partitions", "timestamp", "whole files"),
            ("versions", "date", "delete files"),
            ("versions", "timestamp", "whole files"),
            ("newest of all", "string", "delete files"),
        ],
        tried=[("merge", "string", "delete files")],
        rest="long",
    ),
)
def test_each_row_is_in_one_place_in_a_long_story(
    embedded_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    kind: str,
    row_levels: str,
) -> None:
    lakehouse = Lakehouse(embedded_engine, shape, kind, row_levels)
    lakehouse.play(STORY, monkeypatch)
    check(lakehouse)


@pytest.mark.soak
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(SHAPES, KINDS, ROW_LEVELS, st.lists(STEPS, min_size=2, max_size=7))
def test_each_row_is_in_one_place_in_any_story(
    embedded_engine: Engine, shape: str, kind: str, row_levels: str, steps: list
) -> None:
    lakehouse = Lakehouse(embedded_engine, shape, kind, row_levels)
    with pytest.MonkeyPatch.context() as patch:
        lakehouse.play(steps, patch)
    check(lakehouse)
