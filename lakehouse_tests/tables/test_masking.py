"""What a value looks like is told, and the value is not."""

import pytest

from lakehouse.tables.masking import shape


@pytest.mark.unit
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("jane@example.com", "16 characters: letters, @, dot"),
        ("moc.elpmaxe@enaj", "16 characters: letters, @, dot"),
        (-12.5, "5 characters: digits, dot, other signs"),
        ("", "empty text"),
        ("é 名\x1b", "4 characters: letters, spaces, other signs"),
        ("x" * 5000, "5,000 characters: letters"),
    ],
)
def test_shape_tells_length_and_kinds_of_characters(value: object, said: str) -> None:
    assert shape(value) == said
