"""Moments to come, as a person says them."""

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.cli.options import future_timestamp
from lakehouse.errors import UsageError

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        ("3d", timedelta(days=3)),
        ("1w", timedelta(weeks=1)),
        ("1d12h", timedelta(hours=36)),
        ("2026-11-23T15:00+02:00", timedelta(hours=1)),
        ("2026-11-24T12:00Z", timedelta(days=1)),
    ],
)
def test_a_moment_is_a_duration_or_a_date_with_its_offset(text: str, ahead: timedelta) -> None:
    assert future_timestamp("--until", text, NOW) == NOW + ahead


@pytest.mark.parametrize(
    "text",
    ["", "2", "-2h", "0m", "2026-12-01T08:00", "2026-01-01T08:00Z", "999999w", "soon"],
)
def test_what_is_no_moment_to_come_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="expected a time to come"):
        future_timestamp("--until", text, NOW)
