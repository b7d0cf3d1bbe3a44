"""Tables that fit a terminal, and nothing of them lost."""

import pytest

from lakehouse.cli.output import table_layout
from lakehouse.cli.output.cell_values import Column
from lakehouse.cli.output.printing import table

pytestmark = pytest.mark.unit

COLUMNS = [Column("fruit"), Column("said"), Column("rows", is_number=True)]
ROWS = [["Apple", "it is red, or green, and round", 12], ["苹果", "no", 1234567]]


def test_what_fits_is_as_it_was() -> None:
    assert table(COLUMNS, ROWS, width=80) == table(COLUMNS, ROWS)


def test_the_widest_texts_are_wrapped_between_words_and_numbers_are_not() -> None:
    assert table(COLUMNS, ROWS, width=34).splitlines() == [
        "fruit | said             | rows",
        "------+------------------+--------",
        "Apple | it is red, or    |      12",
        "      | green, and round |",
        "苹果  | no               | 1234567",
        "(2 rows)",
    ]


def test_words_are_broken_only_if_they_are_long() -> None:
    text = "a_path/that/has/no/space/in/it and some words"
    lines = table([Column("p"), Column("q")], [[text, "0123456789"]], width=40).splitlines()
    *rows, _ = lines
    assert max(map(table_layout.cell_width, rows)) <= 40
    assert "0123456789" in rows[2]


@pytest.mark.parametrize(("is_terminal", "width"), [(True, 40), (False, None)])
def test_a_pipe_has_no_width_and_a_terminal_that_of_columns(monkeypatch, is_terminal, width):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    assert table_layout.terminal_width() == width
