"""The forms of a person's values: which are one, and which can be told in bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.tables.person import is_distinctive, normal_id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", "7"),
        (" +007\t", "7"),
        ("000", "0"),
        ("-7", "-7"),
        ("+", "+"),
        ("", ""),
        ("++7", "++7"),
        ("7.0", "7"),
        ("00a7", "00a7"),
        ("a-07", "a-07"),
        ("C 7 ", "C 7"),
        ("٧", "٧"),
    ],
)
def test_an_id_has_one_normal_form(text: str, expected: str) -> None:
    assert normal_id(text) == expected


@given(st.text())
def test_the_normal_form_is_that_of_itself(text: str) -> None:
    assert normal_id(normal_id(text)) == normal_id(text)


@given(st.integers(min_value=0), st.integers(0, 3), st.sampled_from(["", "+"]))
def test_an_integer_is_the_same_with_sign_zeros_and_spaces(
    number: int, zeros: int, sign: str
) -> None:
    assert normal_id(f" {sign}{'0' * zeros}{number}\n") == str(number)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12345678", False),
        ("-12345678", False),
        ("123456789", True),
        ("000000007", False),
        ("abcde", False),
        ("abcdef", True),
        (" abcde ", False),
        ("000012345", False),
        ("a@b.de", True),
        ("", False),
    ],
)
def test_short_values_and_small_integers_are_not_distinctive(
    value: str, expected: bool
) -> None:
    assert is_distinctive(value) is expected
