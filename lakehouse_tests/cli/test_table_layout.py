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


def test_where_no_table_fits_each_row_is_a_list() -> None:
    assert table(COLUMNS, ROWS[:1], width=20).splitlines() == [
        "--------------------",
        "fruit | Apple",
        "said  | it is red,",
        "      | or green,",
        "      | and round",
        "rows  | 12",
        "(1 row)",
    ]


@pytest.mark.parametrize("width", range(8, 60))
def test_no_line_is_wider_than_the_terminal_and_no_letter_is_lost(width: int) -> None:
    text = "a_path/that/has/no/space/in/it and some words"
    lines = table([Column("p"), Column("q")], [[text, "0123456789"]], width=width).splitlines()[
        :-1
    ]
    assert max(map(table_layout.cell_width, lines)) <= width
    kept = "".join("".join(lines).split())
    assert all(kept.count(letter) >= text.count(letter) for letter in set(text) - {" "})


@pytest.mark.parametrize(("is_terminal", "width"), [(True, 40), (False, None)])
def test_a_pipe_has_no_width_and_a_terminal_that_of_columns(
    monkeypatch, is_terminal: bool, width: int | None
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    assert table_layout.terminal_width() == width
