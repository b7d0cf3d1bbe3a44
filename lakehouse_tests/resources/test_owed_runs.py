"""How what is owed is split into runs."""

import pytest

from lakehouse.resources.owed_runs import neighbouring

ORDER = {f"2026-03-0{day}": day for day in range(1, 7)}
BOTH, GOLD = frozenset({"silver", "gold"}), frozenset({"gold"})


@pytest.mark.unit
def test_neighbours_are_one_run():
    owing = dict.fromkeys(["2026-03-03", "2026-03-01", "2026-03-02", "2026-03-05"], BOTH)
    assert neighbouring(owing, ORDER) == [["2026-03-01", "2026-03-02", "2026-03-03"], ["2026-03-05"]]


@pytest.mark.unit
def test_a_day_that_only_gold_owes_is_not_computed_again_in_silver():
    assert neighbouring({"2026-03-01": GOLD, "2026-03-02": BOTH}, ORDER) == [["2026-03-01"], ["2026-03-02"]]


@pytest.mark.unit
def test_nothing_owed_is_no_run():
    assert neighbouring({}, ORDER) == []
