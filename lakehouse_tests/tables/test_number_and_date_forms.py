"""Delivered dates and numbers in the form that casts read: what is refused at load."""

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.tables.number_and_date_forms import (
    decimal_comma,
    epoch_milliseconds,
    grouped_by_commas,
    iso_date,
    whole_number,
)


@pytest.mark.parametrize("form", ["DD.MM.YYYY", "D.M", "D.M/Y", "D.D.Y", ""])
def test_a_form_that_is_none_is_named(form):
    with pytest.raises(DeclarationError, match="is no form of a date"):
        iso_date("day", form)


def test_two_forms_of_one_sign_cannot_be_told_apart():
    with pytest.raises(DeclarationError, match="D/M/Y, M/D/Y, which are ambiguous"):
        iso_date("day", "D/M/Y", "M/D/Y")


@pytest.mark.parametrize(
    ("sql", "delivered", "read"),
    [
        (iso_date("v", "D.M.Y"), "31.12.2026", "2026-12-31"),
        (iso_date("v", "M/D/Y", "D.M.Y"), "1/2/2026 8:26", "2026-1-2 8:26"),
        (iso_date("v", "M/D/Y"), "2026-12-31", "2026-12-31"),
        (iso_date("v", "YMD"), "20261231", "2026-12-31"),
        (iso_date("v", "YMD"), "202612310", "202612310"),
        (iso_date("v", "D.M.Y"), "31.12.20265", "31.12.20265"),
        (whole_number("v"), " 17.0", "17"),
        (whole_number("v"), "17", "17"),
        (whole_number("v"), "17.5", "17.5"),
        (epoch_milliseconds("v"), "1773000000123", "2026-03-08T20:00:00.123Z"),
        (epoch_milliseconds("v"), "1773000000", "1773000000"),
        (epoch_milliseconds("v"), "now", "now"),
    ],
)
def test_a_day_is_written_as_casts_read_it(spark, sql, delivered, read):
    assert _read(spark, sql, delivered) == read


def test_points_between_thousands_may_be_there_or_not(spark):
    delivered = ["1.004,50", "1004,50", "1.200", "-12.345.678", ",5", "0.500", "12.50", "1.2,5"]
    with_points = [text.translate(str.maketrans(",.", ".,")) for text in delivered]
    pairs = zip(delivered, with_points, strict=True)
    rows = spark.createDataFrame([*pairs], "a string, b string")
    read = rows.selectExpr(decimal_comma("a", grouped=True), grouped_by_commas("b")).collect()

    numbers = ["1004.50", "1004.50", "1200", "-12345678", ".5"]
    assert [row[0] for row in read] == [*numbers, "0.500", "12.50", "1.2,5"]
    assert [row[1] for row in read] == [*numbers, "0,500", "12,50", "1,2.5"]


def _read(spark, sql, delivered):
    (row,) = spark.createDataFrame([(delivered,)], "v string").selectExpr(sql).collect()
    return row[0]
