"""Rows as an aligned table, as CSV and as JSON."""

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from lakehouse.cli.output.cell_values import Column, plain_json
from lakehouse.cli.output.printing import csv_text, json_array, table
from lakehouse.errors import UsageError
from lakehouse.storage.byte_sizes import size_text

pytestmark = pytest.mark.unit

COLUMNS = [Column("id", is_number=True), Column("fruit"), Column("berry")]


def test_a_table_is_aligned_with_numbers_on_the_right() -> None:
    assert table(COLUMNS, [[1, "Apple", False], [12, None, True]]).splitlines() == [
        "id | fruit | berry",
        "---+-------+------",
        " 1 | Apple | false",
        "12 | NULL  | true",
        "(2 rows)",
    ]


def test_control_characters_are_shown_and_not_sent_to_the_terminal() -> None:
    assert "two\\nlines \\x1b[31m" in table([Column("x")], [["two\nlines \x1b[31m"]])


def test_csv_reads_back_as_it_was() -> None:
    rows = [[1, 'a "quoted", value', True], [2, "two\r\nlines", None]]
    text = csv_text(COLUMNS, rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["id", "fruit", "berry"],
        ["1", 'a "quoted", value', "true"],
        ["2", "two\r\nlines", ""],
    ]


def test_lines_of_csv_end_alike_and_those_within_a_value_stay() -> None:
    text = (
        csv_text(
            COLUMNS, [[1, "two\r\nlines", True], [2, "old\rmac", None], [3, "unix\n", False]]
        )
        + "\n"
    )
    assert text == 'id,fruit,berry\n1,"two\r\nlines",true\n2,"old\rmac",\n3,"unix\n",false\n'


def test_json_rejects_two_columns_of_one_name() -> None:
    with pytest.raises(UsageError, match="more than one column x"):
        json_array([Column("x"), Column("x")], [[1, 2]])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**53, "9007199254740992"),
        (2**53 - 1, 2**53 - 1),
        (-(2**60), str(-(2**60))),
        (True, True),
        (Decimal("10.50"), "10.50"),
        (Decimal("1E+2"), "100"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 8, 0, 0, 123000, tzinfo=UTC), "2026-01-31T08:00:00.123000Z"),
        (datetime(2026, 1, 31, 8, microsecond=1), "2026-01-31T08:00:00.000001"),
        (datetime(2026, 1, 31, 8), "2026-01-31T08:00:00"),
        (b"\x00\xff", "00ff"),
        ({"a": [Decimal("1.0")]}, {"a": ["1.0"]}),
    ],
)
def test_a_value_in_json_loses_nothing(value: object, shown: object) -> None:
    assert plain_json(value) == shown


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 2**40, "5.0 TiB")],
)
def test_a_size_is_readable(number: int, text: str) -> None:
    assert size_text(number) == text
