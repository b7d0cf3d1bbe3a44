"""Names and values in SQL: whatever they hold, Spark reads back what was meant."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from lakehouse.tables.quoting import between, dotted, identifier, literal, typed

TEXTS = [
    "",
    "it's",
    'say "it"',
    "back\\slash",
    "\\'",
    "line\nbreak\ttab",
    "`tick`",
    "${HOME}",
    "\\${HOME}",
    ":name",
    "ü 漢 🍌",
    "%_",
    "\\u0041",
    "-- no comment",
    "/* nor */",
    "'; DROP TABLE x",
]


@pytest.mark.unit
def test_a_name_is_quoted_part_by_part() -> None:
    assert dotted("silver.fruits") == "`silver`.`fruits`"
    assert identifier("a.b", "c`d") == "`a.b`.`c``d`"


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_reads_back_as_it_is(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {literal(text)} AS value").first()["value"] == text


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -7,
        2**62,
        1.5,
        -0.1,
        float("inf"),
        b"",
        b"\x00'\xff",
        Decimal("12.50"),
        Decimal("-0.001"),
        date(2024, 2, 29),
    ],
    ids=repr,
)
def test_a_value_reads_back_as_it_is(spark: SparkSession, value: object) -> None:
    assert spark.sql(f"SELECT {literal(value)} AS value").first()["value"] == value


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=8))),
        datetime(2024, 1, 2, 3, 4, 5),
    ],
)
def test_a_moment_is_one_in_utc_unless_it_says_otherwise(
    spark: SparkSession, moment: datetime
) -> None:
    meant = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    found = spark.sql(f"SELECT unix_micros({literal(moment)}) AS micros").first()["micros"]
    assert found == (meant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 31, 9, 0, 0, 5),
        datetime(2026, 1, 31, 9, tzinfo=UTC),
        datetime(2026, 1, 31, 9, tzinfo=timezone(timedelta(hours=8))),
    ],
)
def test_a_moment_in_the_type_of_a_column_without_a_zone_is_its_time_in_utc(
    spark: SparkSession, moment: datetime
) -> None:
    as_time = typed(moment, "timestamp_ntz")
    assert as_time.startswith("TIMESTAMP_NTZ ")
    (found,) = (
        spark.sql(f"SELECT {as_time} = CAST({literal(moment)} AS timestamp_ntz) AS same").head()
        or ()
    )
    assert found


@pytest.mark.parametrize("name", ["select", "a b", "tick`s", "größe", "order by", "1st", "a-b"])
def test_a_column_may_have_any_name(spark: SparkSession, name: str) -> None:
    assert spark.sql(f"SELECT 1 AS {identifier(name)}").columns == [name]


@pytest.mark.unit
def test_a_value_without_a_literal_is_an_error() -> None:
    with pytest.raises(TypeError, match="no SQL literal for list"):
        literal([1])


@pytest.mark.unit
def test_bounds_are_of_values_that_have_some_and_left_out_where_they_could_lose_rows() -> None:
    assert between("id", 1, 7) == "(`id` >= 1 AND `id` <= 7)"
    assert between("id", None, None) == "false"
    assert between("id", -0.0, 1.0) == "true"
