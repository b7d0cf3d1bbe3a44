"""Values of manifests as Python has them, also where it knows no such value."""

import math
from datetime import UTC, date, datetime

import pytest

from lakehouse.iceberg.metadata.manifests import readable

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("value", "result_type", "expected"),
    [
        (2**62, "date", date.max),
        (-(2**62), "date", date.min),
        (2**62, "timestamptz", datetime.max.replace(tzinfo=UTC)),
        (-(2**62), "timestamp", datetime.min),
        (-1, "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ],
)
def test_a_moment_lies_within_what_python_knows(
    value: int, result_type: str, expected: object
) -> None:
    assert readable(value, result_type) == expected


def test_rows_without_a_number_are_of_one_partition() -> None:
    first, second = (readable(float(text), "double") for text in ("nan", "nan"))
    assert len({(first,), (second,)}) == 1
    assert math.isnan(first)
