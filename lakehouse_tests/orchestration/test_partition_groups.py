"""Partitions come in as few runs as their sizes allow, and each exactly once."""

import random
from itertools import pairwise

import pytest

from lakehouse.orchestration.partitions import partition_groups
from lakehouse.orchestration.partitions.partition_groups import MOST_ROWS, grouped, stretches

pytestmark = pytest.mark.unit

KEYS = "abcdefgh"
BOTH, GOLD = frozenset({"silver", "gold"}), frozenset({"gold"})


def groups(owing: dict[str, frozenset[str]], **how: object) -> list[str]:
    return ["".join(group) for group in grouped(owing, KEYS, **how)]  # type: ignore[arg-type]


def test_many_rows_divide_runs_and_one_large_partition_is_one() -> None:
    rows = {"a": MOST_ROWS / 2, "b": MOST_ROWS / 2, "c": 1, "d": 3 * MOST_ROWS}
    assert groups(dict.fromkeys("abcde", GOLD), rows=rows) == ["ab", "c", "d", "e"]


@pytest.mark.parametrize("seed", range(50))
def test_each_partition_is_in_one_run_in_order_within_the_bounds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(partition_groups, "MOST_PARTITIONS", chance.randint(1, 9))
    monkeypatch.setattr(partition_groups, "MOST_ROWS", 100)
    keys = [f"{number:02}" for number in range(chance.randint(1, 60))]
    owing = {key: chance.choice([BOTH, GOLD]) for key in keys if chance.random() < 0.6}
    rows = {key: chance.randint(0, 60) for key in keys}
    leaves_gaps = chance.random() < 0.5

    found = list(grouped(owing, keys, rows, leaves_gaps=leaves_gaps))

    assert sorted(key for group in found for key in group) == sorted(owing)
    assert found == sorted(found)
    for group in found:
        assert list(group) == sorted(group)
        assert len(group) <= partition_groups.MOST_PARTITIONS
        assert len(group) == 1 or sum(rows[key] for key in group) <= 100
        assert len({owing[key] for key in group}) == 1
        assert leaves_gaps or len(stretches(keys, group)) == 1
    for tables in (BOTH, GOLD) if leaves_gaps else ():
        of_tables = [group for group in found if owing[group[0]] == tables]
        for before, after in pairwise(of_tables):
            is_full = len(before) == partition_groups.MOST_PARTITIONS
            assert is_full or sum(rows[key] for key in (*before, after[0])) > 100


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("", []), ("d", ["dd"]), ("abdgh", ["ab", "dd", "gh"]), ("hgfedcba", ["ah"])],
)
def test_stretches_have_no_gap(chosen: str, expected: list[str]) -> None:
    assert ["".join(stretch) for stretch in stretches(KEYS, chosen)] == expected
