"""Partitions that are computed anew come in as few runs as there can be."""

import pytest

from lakehouse.privacy import compute_anew
from lakehouse.privacy.compute_anew import grouped

pytestmark = pytest.mark.unit

KEYS = "abcdefgh"


@pytest.mark.parametrize(
    ("wanted", "between", "groups"),
    [
        ("", "", []),
        ("bcd", "", ["bcd"]),
        ("abdh", "", ["ab", "d", "h"]),
        ("abdh", "cefg", ["abdh"]),
        ("abdh", "cef", ["abd", "h"]),
        ("d", "abcefgh", ["d"]),
    ],
)
def test_groups_have_nothing_between_them_but_what_may_be(
    wanted: str, between: str, groups: list[str]
) -> None:
    assert list(map("".join, grouped(KEYS, wanted, between))) == groups


def test_too_many_between_divide_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_anew, "_MOST_BETWEEN", 2)

    assert list(map("".join, grouped(KEYS, "abdgh", "cef"))) == ["abd", "gh"]
