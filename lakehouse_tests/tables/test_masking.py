"""What a value looks like is told, and the value is not."""

import pytest

from lakehouse.tables.masking import shape


@pytest.mark.unit
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("jane@example.com", "16 characters: letters, @, dot"),
        ("moc.elpmaxe@enaj", "16 characters: letters, @, dot"),
        ("7", "1 character: digits"),
        (-12.5, "5 characters: digits, dot, hyphen"),
        ("", "empty text"),
        ("é 名\x1b", "4 characters: letters, spaces, control characters"),
        ("a\u202eb#", "4 characters: letters, other signs, control characters"),
        ("x" * 5000, "5,000 characters: letters"),
    ],
)
def test_shape_tells_length_and_kinds_of_characters(value: object, said: str) -> None:
    assert shape(value) == said
