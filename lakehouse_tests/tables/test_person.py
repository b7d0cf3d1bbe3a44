"""How ids are compared, and which values can be told from others by themselves."""

import pytest

from lakehouse.tables.person import is_distinctive, normal_id

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("7", "7"),
        (" 007 ", "7"),
        ("+7", "7"),
        ("000", "0"),
        ("-07", "-07"),
        ("7.0", "7.0"),
        (" a 07", "a 07"),
        ("", ""),
    ],
)
def test_an_id_is_compared_without_spaces_sign_and_leading_zeros(text, normal):
    assert normal_id(text) == normal


@pytest.mark.parametrize("value", ["ab@x.y", "123456789", "-123456789", "12345a", "1.2345"])
def test_a_value_of_some_length_is_distinctive(value):
    assert is_distinctive(value)


@pytest.mark.parametrize("value", ["", "Ann", "12345678", "+12345678", "-1"])
def test_a_short_value_and_an_integer_of_few_digits_are_not(value):
    assert not is_distinctive(value)
