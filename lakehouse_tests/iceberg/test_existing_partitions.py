"""Which values of its partition column a table has files of is told by its manifests."""

from collections.abc import Collection
from datetime import UTC, date, datetime

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.partition_metadata import ExistingSpans, existing_extents
from lakehouse_tests.frames import frame_of


def at(hour: int, *, day: int = 31, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


SCHEMA = "day date, at timestamp, region string"
ROWS = [
    (date(2026, 1, 31), at(5, minute=30), "north"),
    (date(2026, 3, 1), at(7), "south"),
    (None, None, None),
]
OTHER = {"day": "region", "at": "region", "region": "day"}
JANUARY = (date(2026, 1, 1), date(2026, 1, 31))
MARCH = (date(2026, 3, 1), date(2026, 3, 31))
EXTENTS = {
    "day": {(date(2026, 1, 31),) * 2, (date(2026, 3, 1),) * 2},
    "days(day)": {(date(2026, 1, 31),) * 2, (date(2026, 3, 1),) * 2},
    "months(day)": {JANUARY, MARCH},
    "months(at)": {JANUARY},
    "hours(at)": {(at(5), at(5, minute=59)), (at(7), at(7, minute=59))},
    "region": {("north",) * 2, ("south",) * 2},
    "bucket(4, region)": None,
}


@pytest.mark.spark
def test_the_values_of_a_column_that_files_may_have(embedded_engine: Engine) -> None:
    rows = frame_of(embedded_engine.spark, SCHEMA, ROWS)
    embedded_engine.catalog.client.create_namespace_if_not_exists("silver")
    told: dict[str, object] = {}
    for number, transform in enumerate(EXTENTS):
        name = f"silver.t{number}"
        by = transform.strip(")").split("(")[-1].split(" ")[-1]
        sql_name = embedded_engine.catalog.sql_name(name)
        embedded_engine.sql(
            f"CREATE TABLE {sql_name} ({SCHEMA}) USING iceberg PARTITIONED BY ({transform})"
        )
        rows.writeTo(sql_name).append()
        loaded = embedded_engine.catalog.load(name)
        found = existing_extents(loaded, by)
        assert existing_extents(loaded, OTHER[by]) is None
        told[transform] = _to_minutes(found) if transform == "hours(at)" else found
    assert told == EXTENTS


def _to_minutes(extents: Collection[tuple[datetime, datetime]] | None) -> object:
    return {(first, last.replace(second=0, microsecond=0)) for first, last in extents or ()}


@pytest.mark.unit
def test_spans_are_asked_for_what_they_have_in_common_with_what_is_there() -> None:
    days = ExistingSpans([JANUARY, (date(2026, 2, 1),) * 2, MARCH], date(2026, 1, 1))
    assert days.share((date(2026, 1, 31), date(2026, 2, 1)))
    assert days.share((date(2026, 2, 28), date(2026, 3, 2)))
    assert not days.share((date(2026, 2, 2), date(2026, 3, 1)))
    assert not days.share((date(2026, 4, 1), date(2026, 4, 2)))
    # A day is one of UTC, and a window of another zone has hours of two.
    moments = ExistingSpans([(date(2026, 1, 30),) * 2, (at(5), at(5, minute=59))], at(0))
    assert moments.share((at(16, day=30), at(16)))
    assert moments.share((at(5), at(6)))
    assert not moments.share((at(6), at(7)))
    assert not ExistingSpans([], date(2026, 1, 1)).share(JANUARY)
