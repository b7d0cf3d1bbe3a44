"""What a single value looks like."""

import pytest

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.values import value_of
from lakehouse.scaffolding.words import words_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("17", "whole"),
        ("-3", "whole"),
        (" 17 ", "whole"),
        ("0", "whole"),
        ("007", "code"),
        ("1.5", "decimal"),
        (".5", "decimal"),
        ("0.123", "decimal"),
        ("1.234", "decimal_or_grouped"),
        ("12,50", "comma"),
        ("1,234", "comma_or_grouped"),
        ("1,234.50", "grouped_decimal"),
        ("1,234,567", "grouped_decimal"),
        ("1.234,50", "grouped_comma"),
        ("1.234.567", "grouped_comma"),
        ("1.5e5", "exponent"),
        ("1e-05", "exponent"),
        ("1e5", "code"),
        ("+0049", "code"),
        ("0101.21", "code"),
        ("Yes", "boolean"),
        ("2026-01-31", "date"),
        ("2026-01-31T08:00:00.123Z", "date"),
        ("31.1.2026 8:26", "date"),
        ("2026-02-30", "text"),
        ("31-Jan-2026", "unread_date"),
        ("1/31/26", "unread_date"),
        ("1/31/2026 8:26 AM", "unread_date"),
        ("C536379", "text"),
        ("", "text"),
        ("1,2,3", "text"),
        ("١٢", "text"),
        ("nan", "text"),
    ],
)
def test_a_value_has_a_form(text, form):
    assert value_of(text).form == form


@pytest.mark.parametrize(
    ("text", "looks_like"),
    [
        ("ada@mail.example", "email"),
        ("ada@mail", ""),
        ("+44 20 7946 0123", "phone"),
        ("(030) 7946-0123", "phone"),
        ("0171/5551234", "phone"),
        ("0 532 123 45 67", "phone"),
        ("0 (532) 123 45 67", "phone"),
        ("0-532-123-45-67", "phone"),
        ("0/171/2345678", "phone"),
        ("0-6 6-3 6-2", ""),
        ("0000-00-00", ""),
        ("00/00/0000", ""),
        ("Ada Lovelace", "full_name"),
        ("LANTERN", ""),
    ],
)
def test_a_text_may_look_like_one_of_people(text, looks_like):
    assert value_of(text).looks_like == looks_like


def test_a_time_counts_unless_it_is_midnight():
    assert not value_of("2026-01-31 00:00:00").date.has_time
    assert value_of("2026-01-31 00:00:00Z").date.has_time
    assert value_of("2026-01-31 08:00").date.has_time


def test_a_value_as_long_as_a_page_takes_no_time():
    assert value_of("1" * 100_000 + "x").form == "text"
    assert value_of("a@" * 50_000).form == "text"
    assert value_of("Ab " * 50_000).form == "text"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CustomerID", ("customer", "id")),
        ("customer_id", ("customer", "id")),
        ("Customer No.", ("customer", "no")),
        ("line2text", ("line", "2", "text")),
    ],
)
def test_names_are_read_word_by_word(name, words):
    assert words_of(name) == words


@pytest.mark.parametrize(("file_type", "blank_rows"), [("", 0), ("string", 2)])
def test_an_empty_text_is_null_in_csv_alone(file_type: str, blank_rows: int) -> None:
    profile = ColumnProfile("amount", file_type)
    profile.add({"": 2, None: 1, "7": 1})
    assert (profile.blank_rows, profile.empty_rows, profile.filled_rows) == (blank_rows, 3, 1)
