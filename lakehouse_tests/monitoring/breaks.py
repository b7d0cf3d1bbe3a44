"""Things that break and mend, as the tests of this folder make them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.monitoring.incidents import Firing, Resolved
from lakehouse.orchestration.alert import Alert

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)
DAY = timedelta(hours=24)


def at(minutes: float) -> datetime:
    """So many minutes after all began."""
    return BEGIN + timedelta(minutes=minutes)


def firing(minutes: float, key: str = "check silver.fruits a", **parts: Any) -> Firing:
    given: dict[str, Any] = {
        "kind": "check",
        "severity": "error",
        "title": key,
        "table": "silver.fruits",
    } | parts
    return Firing(
        key,
        at=at(minutes),
        **{**given, "affected_partitions": frozenset(given.get("affected_partitions", ()))},
    )


def resolved(
    minutes: float, key: str = "check silver.fruits a", affected_partitions: Iterable[str] = ()
) -> Resolved:
    return Resolved(key, at(minutes), "It passed.", frozenset(affected_partitions))


def told(alerts: Iterable[Alert]) -> list[tuple[str, str]]:
    return [(alert.saying, alert.key) for alert in alerts]
