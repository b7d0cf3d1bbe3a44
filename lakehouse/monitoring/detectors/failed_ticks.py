"""Sensors and schedules whose last tick failed; one that was switched off is no incident.

A tick that did not reach Dagster's server of user code is passed over: this sensor is answered
by that server. So end the ticks that go on while `lakehouse dev` is killed; where the server is
gone for long, there is no sign of life.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.failure_reasons import reason_of
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed
from lakehouse.orchestration.asset_keys import FEEDS_SENSOR
from lakehouse.orchestration.dagster_internals import automation_states, last_ticks
from lakehouse.orchestration.error_causes import causes

_MOST_TICKS = 5
_FAILURE, _STARTED = "FAILURE", "STARTED"
# What Dagster says too where the server is there, and takes too long, is another text.
_UNREACHED = ("DagsterUserCodeUnreachableError", "Could not reach user code server")


def detect_failed_ticks(context: MonitorContext) -> Observed:
    """Return the sensors and schedules that fail now."""
    facts: list[Firing] = []
    for state in automation_states(context.instance):
        if state.instigator_name in context.automations and state.is_running:
            facts += _failing(context, state)
    return Observed(tuple(facts), frozenset({"automation"}))


def _failing(context: MonitorContext, state: Any) -> Iterator[Firing]:
    ticks = last_ticks(context.instance, state, _MOST_TICKS)
    last = next((tick for tick in ticks if _has_ended(tick)), None)
    if last is None or last.status.value != _FAILURE:
        return
    kind, name = state.instigator_type.value.lower(), state.instigator_name
    table, commands = "", ["lakehouse doctor"]
    consequence = []
    for feed in context.feeds:
        if name in (f"{feed.name}_files", f"{feed.name}_batch"):
            table = feed.table
            commands.insert(0, f"lakehouse ingest {feed.name}")
            consequence = [
                f"No file of feed {feed.name} is ingested by itself until it works again."
            ]
    if name == FEEDS_SENSOR:
        consequence = ["No file of any feed is ingested by itself until it works again."]
        commands.insert(0, "lakehouse ingest")
    reason = reason_of(last.error, context.declared.get(table))
    yield context.firing(
        f"{kind} {name}",
        "automation",
        datetime.fromtimestamp(last.timestamp, UTC),
        f"{kind} {name} fails",
        lines=[reason, *consequence],
        links=[f"Ticks: {_place(context, state, kind, name)}"],
        commands=commands,
        table=table,
        brief=reason,
        # The next tick is some seconds off; that of a schedule may be a day.
        heals=kind == "sensor",
    )


def _has_ended(tick: Any) -> bool:
    """Whether a tick ended, and reached Dagster's server of user code."""
    if tick.status.value == _STARTED:
        return False
    kind, text = _UNREACHED
    return not any(
        cause.cls_name == kind and text in cause.message for cause in causes(tick.error)
    )


def _place(context: MonitorContext, state: Any, kind: str, name: str) -> str:
    at = state.origin.repository_origin
    where = f"{at.repository_name}@{at.code_location_origin.location_name}"
    return f"{context.ui_url}/locations/{where}/{kind}s/{name}"


def names_of(repository: dg.RepositoryDefinition) -> set[str]:
    """Return the names of the sensors and schedules that there are."""
    return {sensor.name for sensor in repository.sensor_defs} | {
        schedule.name for schedule in repository.schedule_defs
    }
