"""Moves of columns, for any order: they end in the declared one, and none is needless."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.iceberg.evolve.schema_steps import moves, with_added

NAMES = [f"c{number}" for number in range(7)]


def moved(order: list[str], declared: list[str]) -> list[str]:
    found = list(order)
    for name, after in moves(order, declared):
        found.remove(name)
        found.insert(found.index(after) + 1 if after else 0, name)
    return found


@settings(deadline=None)
@given(
    standing=st.permutations(NAMES),
    declared=st.permutations(NAMES),
    kept=st.integers(0, len(NAMES)),
)
def test_moves_end_in_the_declared_order_after_columns_were_added(
    standing: list[str], declared: list[str], kept: int
) -> None:
    assert moved(with_added(standing[:kept], declared), declared) == declared


@settings(deadline=None)
@given(
    declared=st.permutations(NAMES),
    name=st.sampled_from(NAMES),
    place=st.integers(0, len(NAMES) - 1),
)
def test_one_column_out_of_place_is_one_move(
    declared: list[str], name: str, place: int
) -> None:
    order = [other for other in declared if other != name]
    order.insert(place, name)
    assert len(moves(order, declared)) == (order != declared)
