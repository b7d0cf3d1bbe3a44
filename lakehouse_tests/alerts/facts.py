"""Facts, planned messages and rejected files for the tests of this folder."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.alerts.alert_plan import AlertPlan, plan_alerts
from lakehouse.alerts.alert_state import AlertState
from lakehouse.alerts.incidents import Alert, Firing, Incident, Kind, Observed, Resolved
from lakehouse.alerts.mutes import Mute
from lakehouse_tests.alerts.watch import Watch

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
DAY = timedelta(hours=24)
DAY_MINUTES = 24 * 60


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def firing(minutes: float, key: str = "check silver.fruits a", **fields: Any) -> Firing:
    values: dict[str, Any] = {
        "kind": "check",
        "severity": "error",
        "title": key,
        "table": "silver.fruits",
    } | fields
    values["affected_partitions"] = frozenset(values.get("affected_partitions", ()))
    return Firing(key, at=at(minutes), **values)


def resolved(
    minutes: float, key: str = "check silver.fruits a", affected_partitions: Iterable[str] = ()
) -> Resolved:
    return Resolved(key, at(minutes), "It passed.", frozenset(affected_partitions))


def mute(until_minutes: float, table: str = "silver.fruits") -> Mute:
    return Mute(table, at(until_minutes), "ben", "known", at(0))


def plan(
    open_now: Mapping[str, Incident],
    minutes: float,
    *facts: Firing | Resolved,
    complete: frozenset[Kind] = frozenset(),
    mutes: Iterable[Mute] = (),
    is_first: bool = False,
) -> AlertPlan:
    """Plan the messages of a round."""
    state = AlertState(
        open=open_now,
        cursors={} if is_first else {"round_at": f"before {at(minutes)}"},
        mutes={mute.table: mute for mute in mutes},
    )
    return plan_alerts(state, Observed(facts, complete), at(minutes), DAY)


def events(alerts: Iterable[Alert]) -> list[tuple[str, str]]:
    return [(alert.saying, alert.key) for alert in alerts]


def reject(
    watch: Watch, name: str, reason: str = "missing column berry", at: datetime | None = None
) -> None:
    """Put a rejected file and its reason into the home."""
    folder = watch.settings.home / "rejected" / "fruits"
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "feed": "fruits",
        "file": name,
        "sha256": "0" * 64,
        "reason": reason,
        "found": "a header with id",
        "expected": "id, berry",
        "rejected_at": (at or datetime.now(UTC)).isoformat(),
        "next_step": "Deliver the column.",
    }
    (folder / f"{name}.0123.csv").write_text("id\n1\n")
    (folder / f"{name}.0123.csv.reason.json").write_text(json.dumps(content))
