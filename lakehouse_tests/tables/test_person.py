"""How the values of a person are compared."""

import pytest

from lakehouse.tables.person import is_distinctive, normal_id

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 007 ", "7"),
        ("+7", "7"),
        ("7", "7"),
        ("000", "0"),
        ("-7", "-7"),
        ("a-07", "a-07"),
        ("", ""),
        ("7.0", "7.0"),
        ("٧", "٧"),
    ],
)
def test_an_id_is_compared_without_spaces_sign_and_leading_zeros(text, expected):
    assert normal_id(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("maria@example.org", True),
        ("abcdef", True),
        ("abcde", False),
        (" abcde ", False),
        ("12345678", False),
        ("123456789", True),
        ("000012345", False),
        ("-12345678", False),
        ("", False),
    ],
)
def test_what_is_long_enough_can_be_told_from_others_as_bytes(value, expected):
    assert is_distinctive(value) is expected
