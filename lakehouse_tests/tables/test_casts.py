"""Delivered text becomes a value only where nothing of it is lost or guessed."""

import pytest

from lakehouse.tables.casts import Cast
from lakehouse.tables.quoting import literal

KUALA_LUMPUR = "Asia/Kuala_Lumpur"


def cast(spark, text, to, time_zone="UTC"):
    given, raw = Cast(to, time_zone), literal(text)
    (value,) = spark.sql(f"SELECT CAST({given.sql(raw)} AS string)").first()
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12.50", "12.50"),
        (" 7 ", "7.00"),
        ("1e2", "100.00"),
        ("12.505", None),
        ("12.50" + "0" * 40 + "1", None),
        ("0.00" + "9" * 40, None),
        ("1.5e-2", None),
        ("1.00000000000000000000000000000000000000001e0", None),
        ("+.5", "0.50"),
        ("\u0661\u0662", None),
        ("\u0661" + "0" * 30, None),
        ("99999999.99", "99999999.99"),
        ("100000000", None),
        ("NaN", None),
        ("", None),
    ],
)
def test_a_decimal_keeps_all_its_digits(spark, text, value):
    assert cast(spark, text, "decimal(10,2)") == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("CAST(0.1 AS FLOAT)", "0.10"),
        ("CAST(0.1 AS DOUBLE)", "0.10"),
        ("0.105BD", None),
        ("1.5000BD", "1.50"),
        ("'1.5\\t'", "1.50"),
        ("7", "7.00"),
    ],
)
def test_numbers_are_cast_as_text_is(spark, raw, value):
    (found,) = spark.sql(f"SELECT CAST({Cast('decimal(10,2)').sql(raw)} AS string)").first()
    assert found == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.0000000001", "0.0000000001"),
        ("0.00000000011", None),
        ("1e-11", None),
        ("1e3", "1000.0000000000"),
    ],
)
def test_the_widest_decimal_keeps_all_its_digits_too(spark, text, value):
    assert cast(spark, text, "decimal(38,10)") == value


@pytest.mark.parametrize("text", ["\u0661\u0662", "\uff11", "1\u0660", "\u06f1"])
@pytest.mark.parametrize("to", ["bigint", "int", "double", "date", "timestamp"])
def test_digits_are_those_from_0_to_9(spark, text, to):
    assert cast(spark, text, to) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-04-01T17:00:00.123456789Z", "2020-04-01 17:00:00.123456"),
        ("2020-03-29T02:30", "2020-03-29 01:30:00"),
        ("2020-10-25T02:30", "2020-10-25 00:30:00"),
    ],
    ids=["finer than a microsecond", "an hour that is left out", "an hour that comes twice"],
)
def test_what_a_moment_loses_and_what_is_taken_of_a_change_of_clocks(spark, text, value):
    assert cast(spark, text, "timestamp", "Europe/Rome") == value


@pytest.mark.parametrize("to", ["double", "float"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("15", "15.0"),
        (" -1.5\t", "-1.5"),
        ("5.", "5.0"),
        ("1.5e2", "150.0"),
        ("9" * 36, "1.0E36"),
        ("0" * 50 + "7.5", "7.5"),
        ("15F", None),
        ("12D", None),
        ("0x1p3", None),
        ("1e999", None),
        ("NaN", "NaN"),
        ("+Infinity", "Infinity"),
        (" -INF ", "-Infinity"),
        ("1,5", None),
        ("e5", None),
        (".", None),
        ("", None),
    ],
)
def test_a_number_of_any_size_is_written_in_digits(spark, text, value, to):
    assert cast(spark, text, to) == value


@pytest.mark.parametrize(
    ("raw", "to"),
    [
        ("CAST('Infinity' AS double)", "double"),
        ("1.5E0", "float"),
        ("7", "double"),
        ("1.25BD", "double"),
        ("true", "double"),
        ("DATE'2026-03-01'", "timestamp_ntz"),
        ("TIMESTAMP'2026-03-01 08:00:00Z'", "timestamp_ntz"),
        ("TIMESTAMP_NTZ'2026-03-01 08:00:00'", "timestamp_ntz"),
    ],
)
def test_what_is_no_text_is_read_as_ever(spark, raw, to):
    value, before = spark.sql(f"SELECT {Cast(to).sql(raw)}, CAST({raw} AS {to})").first()
    assert value == before


EDGES = [
    "0000-01-01",
    "0000-12-31T23:59:59Z",
    "0001-01-01",
    "0001-1-1",
    "0001-01-01T00:00:00+05:00",
    "0001-01-01 00:00:00",
    "9999-12-31",
    "9999-12-31 23:59:59",
    "9999-12-31T20:00:00Z",
    "9999-12-31T20:00:00-05:00",
    "\t9999-12-31T23:59:59.999999Z",
]


@pytest.mark.parametrize("to", ["date", "timestamp"])
@pytest.mark.parametrize("zone", ["UTC", KUALA_LUMPUR, "America/New_York"])
def test_no_zone_moves_a_value_to_a_year_that_python_does_not_know(spark, to, zone):
    terms = [f"CAST({Cast(to, zone).sql(literal(text))} AS string)" for text in EDGES]
    (row,) = spark.sql(f"SELECT {', '.join(terms)}").collect()

    values = {text: value for text, value in zip(EDGES, row, strict=True) if value is not None}
    assert {value for value in values.values() if not "0001" <= value[:5] <= "9999-"} == set()
    assert "0000-01-01" not in values
    assert ("9999-12-31 23:59:59" in values) == (to == "date" or zone != "America/New_York")
    assert ("9999-12-31T20:00:00Z" in values) == (to == "timestamp" or zone != KUALA_LUMPUR)
    assert "9999-12-31" in values
