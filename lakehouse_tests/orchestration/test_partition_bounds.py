"""Partitions of a Dagster run as bounds in a table's column."""

from datetime import UTC, date, datetime

import dagster as dg
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.orchestration.partitions.partition_bounds import (
    all_partitions,
    keys_holding,
    partitions_of,
)

KUALA_LUMPUR = dg.DailyPartitionsDefinition(
    "2024-01-01", timezone="Asia/Kuala_Lumpur", end_offset=1
)
REGIONS = dg.StaticPartitionsDefinition(["north", "south"])


def test_a_day_of_a_date_column_is_that_date_whatever_its_zone():
    found = partitions_of(KUALA_LUMPUR, ["2024-03-01"], column="day", column_type="date")

    assert found.values == ("2024-03-01",)
    assert found.ranges == ((date(2024, 3, 1), date(2024, 3, 2)),)
    assert (
        found.predicate("day") == "(`day` >= DATE '2024-03-01' AND `day` < DATE '2024-03-02')"
    )


def test_a_day_of_a_timestamp_column_is_its_span_in_utc():
    found = partitions_of(KUALA_LUMPUR, ["2024-03-01"], column="ts", column_type="timestamp")

    assert found.ranges == (
        (datetime(2024, 2, 29, 16, tzinfo=UTC), datetime(2024, 3, 1, 16, tzinfo=UTC)),
    )


def test_static_keys_are_values_of_a_string_column():
    found = partitions_of(REGIONS, ["north"], column="region", column_type="string")

    assert found.predicate("region") == "`region` IN ('north')"


def test_static_keys_of_an_integer_column_are_numbers():
    years = dg.StaticPartitionsDefinition(["2023", "2024"])

    assert (
        partitions_of(years, ["2024"], column="year", column_type="int").predicate("year")
        == "(`year` >= 2024 AND `year` < 2025)"
    )


@pytest.mark.parametrize(
    ("definition", "key", "column_type", "message"),
    [
        (
            dg.MultiPartitionsDefinition({"region": REGIONS, "day": KUALA_LUMPUR}),
            "2024-03-01|north",
            "string",
            "several dimensions",
        ),
        (REGIONS, "north", "boolean", "expected string, int or bigint"),
        (REGIONS, "north", "int", "'north' is not a number"),
        (dg.StaticPartitionsDefinition(["²"]), "²", "int", "'²' is not a number"),
        (dg.StaticPartitionsDefinition(["--5"]), "--5", "int", "'--5' is not a number"),
        (KUALA_LUMPUR, "2024-03-01", "bigint", "expected date, timestamp or string"),
        (
            dg.HourlyPartitionsDefinition("2024-01-01-00:00"),
            "2024-03-01-05:00",
            "date",
            "expected whole days",
        ),
    ],
)
def test_partitions_that_a_column_cannot_hold_are_rejected(
    definition, key, column_type, message
):
    with pytest.raises(DeclarationError, match=message):
        partitions_of(definition, [key], column="c", column_type=column_type)


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (KUALA_LUMPUR, {"2024-03-01", "2024-03-03"}),
        (dg.MonthlyPartitionsDefinition("2024-01-01"), {"2024-03-01"}),
        (
            dg.WeeklyPartitionsDefinition("2024-01-07", hour_offset=5),
            {"2024-02-25", "2024-03-03"},
        ),
    ],
    ids=["days", "months", "weeks that begin on Sunday at 5"],
)
def test_days_lie_in_the_window_that_they_begin_in(
    definition: dg.PartitionsDefinition, expected: set[str]
) -> None:
    days = [date(2024, 3, 1), date(2024, 3, 3), date(2023, 12, 31), None]

    assert keys_holding(definition, definition.get_partition_keys(), days) == expected


def test_moments_of_a_day_of_utc_lie_in_each_window_that_overlaps_it() -> None:
    keys = KUALA_LUMPUR.get_partition_keys()

    assert keys_holding(KUALA_LUMPUR, keys, [date(2024, 3, 1)], "timestamp") == {
        "2024-03-01",
        "2024-03-02",
    }
    late = datetime(2024, 3, 1, 16, tzinfo=UTC)
    assert keys_holding(KUALA_LUMPUR, keys, [late], "timestamp") == {"2024-03-02"}
    hours = dg.HourlyPartitionsDefinition("2024-03-01-12:00")
    assert (
        len(keys_holding(hours, hours.get_partition_keys(), [date(2024, 3, 1)], "timestamp"))
        == 12
    )


def test_a_day_of_moments_is_computed_by_runs_of_all_its_windows() -> None:
    first, both = (
        partitions_of(KUALA_LUMPUR, keys, column="ts", column_type="timestamp")
        for keys in (["2024-03-01"], ["2024-03-01", "2024-03-02"])
    )

    assert (first.touches(date(2024, 3, 1)), first.has(date(2024, 3, 1))) == (True, False)
    assert both.has(date(2024, 3, 1))


@pytest.mark.parametrize(
    ("value", "lies_within", "as_a_whole"),
    [
        (None, False, False),
        (date(2023, 12, 31), True, False),
        (date(2024, 3, 1), True, True),
        (date(2024, 3, 2), True, False),
        (date(9999, 12, 31), False, False),
        (datetime(2024, 3, 2, 15, 59, tzinfo=UTC), True, True),
        (datetime(2024, 3, 2, 16, tzinfo=UTC), False, False),
    ],
)
def test_all_partitions_have_some_moments_of_a_day_or_all(
    value, lies_within, as_a_whole
) -> None:
    definition = dg.DailyPartitionsDefinition(
        "2024-01-01", end_date="2024-03-03", timezone="Asia/Kuala_Lumpur"
    )
    every = all_partitions(definition, column="ts", column_type="timestamp")

    assert (every.has(value), every.has_all_of(value)) == (lies_within, as_a_whole)


def test_a_window_that_is_excluded_is_no_partition() -> None:
    definition = dg.DailyPartitionsDefinition(
        "2024-01-01", end_date="2024-01-06", exclusions=[datetime(2024, 1, 3)]
    )
    every = all_partitions(definition, column="day", column_type="date")

    assert every.merged_ranges == (
        (date(2024, 1, 1), date(2024, 1, 3)),
        (date(2024, 1, 4), date(2024, 1, 6)),
    )
    assert keys_holding(definition, definition.get_partition_keys(), [date(2024, 1, 3)]) == {
        "2024-01-02"
    }


@pytest.mark.parametrize(
    ("column_type", "value", "other"),
    [("string", "2023", "x"), ("int", 2023, 2025)],
    ids=["string", "int"],
)
def test_static_partitions_are_all_that_there_are(column_type, value, other) -> None:
    every = all_partitions(
        dg.StaticPartitionsDefinition(["2023", "2024"]), column="year", column_type=column_type
    )

    assert (every.has(value), every.has(other), every.has(None)) == (True, False, False)


@pytest.mark.parametrize("column_type", ["int", "bigint"])
def test_numbers_are_found_however_their_keys_are_written(column_type) -> None:
    months = [f"{month:02}" for month in range(1, 13)]
    definition = dg.StaticPartitionsDefinition(["-1", *months])

    assert keys_holding(definition, ["-1", *months], [-1, 3, 11, None], column_type) == {
        "-1",
        "03",
        "11",
    }


def test_what_lies_in_no_window_goes_with_the_newest() -> None:
    keys = KUALA_LUMPUR.get_partition_keys()

    assert keys_holding(KUALA_LUMPUR, keys, [None, date(2023, 12, 31)]) == {keys[-1]}
    assert keys_holding(KUALA_LUMPUR, keys, []) == set()
