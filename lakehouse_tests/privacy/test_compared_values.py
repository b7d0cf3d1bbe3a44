"""Few rows have to be looked at as text, and nobody is missed among the others."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse.privacy.compared_values import compared, may_be_ids, may_be_values
from lakehouse.tables.person import normal_id

pytestmark = pytest.mark.unit

_PARTS = ["a", "B", "ä", "Ä", "ß", "ẞ", "σ", "Σ", "ς", "i", "ı", "I", "İ", "\u0307", "K"]
_PARTS += [" ", "\x1f", "\u2003", "\u0345"]


def _some_texts() -> list[str]:
    chance = random.Random()
    return ["".join(chance.choices(_PARTS, k=chance.randint(1, 4))) for _ in range(2000)]


def test_a_value_is_found_in_all_spellings_that_are_compared_as_it() -> None:
    texts = _some_texts()
    keys = frozenset(map(compared, random.sample(texts, 50)))
    keys |= {compared("ΓΙΩΡΓΟΣ"), compared("İpek")}
    texts += ["ΓΙΩΡΓΟΣ", "Γιωργος", "İpek"]

    may_be = may_be_values(pa.array(texts), keys).to_pylist()

    others = {
        text for text, is_candidate in zip(texts, may_be, strict=True) if not is_candidate
    }
    assert keys.isdisjoint(map(compared, others))


@pytest.mark.parametrize("keys", [{"anna"}, {"änna"}])
def test_others_are_not_looked_at(keys: set[str]) -> None:
    values = pa.array(["bob", "Ännä", None, "hanna"])

    assert may_be_values(values, keys).to_pylist() == [False] * 4


def test_numbers_are_ids_as_their_text_is() -> None:
    values = pa.array([7, -7, 70, None], pa.int32())

    may_be = may_be_ids(values, {"7", "-7", "٣", "x", str(2**70)}).to_pylist()

    assert may_be == [True, True, False, False]


def test_what_is_no_text_may_be_any_value() -> None:
    values = pa.array([Decimal("7.0"), None])

    assert may_be_ids(values, {normal_id("7.0")}).to_pylist() == [True, False]
    assert may_be_values(values, {"7.0"}).to_pylist() == [True, False]
