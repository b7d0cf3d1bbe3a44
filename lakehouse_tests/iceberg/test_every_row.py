"""Every delivered row is in exactly one place, whatever happens: as a property, over random
tables and stories.
"""

from typing import get_args

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.declarations import content
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
"""Two contents under one name, one of them again; a run that dies, a function that changes, and
a rejection.
"""

UNDONE: list[Step] = [
    Deliver("x.csv", (("a", "bad", 1, 0),)),
    Compute(),
    Deliver("y.csv", (("a", "2", 2, 0),)),
    Compute(killed=True),
    Compute(resolved=True),
]
"""A row that a newer version corrects, the run of which dies; and a function that refuses the
newer one.
"""

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
    """Whether another row of its key stands in its place: of versions the newest, of merged
    ones the last.
    """
    rivals = [found for found in table if found[3] == row[3]]
    if lakehouse.table.versions:
        return any(_age(found) >= _age(row) for found in rivals)
    return lakehouse.shape == "merge" and bool(rivals)


def _age(row: tuple) -> tuple:
    """Return what orders versions."""
    file, sha256, number, _, version = row
    return version, file, number, sha256


@pytest.mark.long
@pytest.mark.parametrize("shape", ["versions", "merge"])
def test_a_row_comes_back_that_was_corrected_by_what_never_was_published(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch, shape: Shape
) -> None:
    lakehouse = Lakehouse(embedded_engine, shape, "string")
    lakehouse.play(UNDONE, monkeypatch)
    check(lakehouse)
    assert len(lakehouse.fates()["quarantine"]) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("versions", "date"),
        pytest.param("append", "int", marks=pytest.mark.soak),
        pytest.param("partitions", "timestamp", marks=pytest.mark.soak),
        pytest.param("newest", "int", marks=pytest.mark.soak),
        pytest.param("merge", "string", marks=pytest.mark.soak),
        pytest.param("overwrite", "date", marks=pytest.mark.soak),
        pytest.param("newest of all", "string", marks=pytest.mark.soak),
    ],
)
def test_each_row_is_in_one_place_after_a_replay(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch, shape: Shape, kind: Kind
) -> None:
    """And what the function corrects is not in quarantine, but for what lies in no partition."""
    lakehouse = Lakehouse(embedded_engine, shape, kind)
    lakehouse.play(REPLAYED, monkeypatch)
    check(lakehouse)
    held = content(embedded_engine, f"{lakehouse.table.name}_quarantine", "v", "d")
    assert held
    assert not [value for value, place in held if value == "mend" and place is not None]


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("merge", "string"),
        pytest.param("partitions", "date", marks=pytest.mark.soak),
        pytest.param("newest", "int", marks=pytest.mark.soak),
        pytest.param("append", "int", marks=pytest.mark.soak),
        pytest.param("overwrite", "date", marks=pytest.mark.soak),
        pytest.param("versions", "timestamp", marks=pytest.mark.soak),
    ],
)
def test_each_row_is_in_one_place_after_rows_were_cleared(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch, shape: Shape, kind: Kind
) -> None:
    """And what was cleared does not come back, however often it is refused."""
    lakehouse = Lakehouse(embedded_engine, shape, kind)
    lakehouse.play(CLEARED, monkeypatch)
    check(lakehouse)
    found = lakehouse.fates()
    assert found["cleared"]
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
