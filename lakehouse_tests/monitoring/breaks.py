"""Things that break and mend, as the tests of this folder make them."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.monitoring.alert_plan import AlertPlan, SilenceOf, plan_alerts
from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.incidents import Firing, Incident, Kind, Observed, Resolved
from lakehouse.orchestration.alert import Alert
from lakehouse_tests.monitoring.watch import Watch

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


def plan(
    open_now: Mapping[str, Incident],
    minutes: float,
    *facts: Firing | Resolved,
    complete: frozenset[Kind] = frozenset(),
    silence_of: SilenceOf = lambda _table, _now: "",
    is_first: bool = False,
) -> AlertPlan:
    """Plan the alerts of what was observed by then; where it is not the first look, another
    one was before.
    """
    state = AlertState(open=open_now, cursors={} if is_first else {"looked_at": "before"})
    return plan_alerts(state, Observed(facts, complete), at(minutes), DAY, silence_of)


def told(alerts: Iterable[Alert]) -> list[tuple[str, str]]:
    return [(alert.saying, alert.key) for alert in alerts]


def reject(
    watch: Watch, name: str, reason: str = "missing column berry", at: datetime | None = None
) -> None:
    folder = watch.settings.home / "rejected" / "fruits"
    folder.mkdir(parents=True, exist_ok=True)
    said = {
        "feed": "fruits", "file": name, "sha256": "0" * 64, "reason": reason, "found": "a header with id",
        "expected": "id, berry", "rejected_at": (at or datetime.now(UTC)).isoformat(), "next_step": "Deliver the column.",
    }  # fmt: skip
    (folder / f"{name}.0123.csv").write_text("id\n1\n")
    (folder / f"{name}.0123.csv.reason.json").write_text(json.dumps(said))
