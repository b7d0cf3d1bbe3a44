"""Running sensors and schedules whose last tick failed.

A tick that did not reach the code server is skipped, since this sensor runs in that server: such
ticks occur with a killed `lakehouse dev`. If the server is down for long, there is no heartbeat.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.alerts.failure_reasons import reason_of
from lakehouse.alerts.incidents import Firing, Observed
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.orchestration.asset_keys import FEEDS_SENSOR
from lakehouse.orchestration.dagster_internals import automation_states, last_ticks
from lakehouse.orchestration.failure_texts import causes

_MOST_TICKS = 5
_FAILURE, _STARTED = "FAILURE", "STARTED"
_UNREACHABLE = ("DagsterUserCodeUnreachableError", "Could not reach user code server")
"""Dagster reports a slow tick with the same error and another text."""
_NO_LOCATION = "DagsterCodeLocationNotFoundError"
"""Of a tick while the code server stops or restarts."""


def detect_failed_ticks(context: MonitorContext) -> Observed:
    """Return the sensors and schedules that fail now."""
    facts: list[Firing] = []
    for state in automation_states(context.instance):
        if state.instigator_name in context.automations and state.is_running:
            facts += _failing(context, state)
    return Observed(tuple(facts), frozenset({"automation"}))


def _failing(context: MonitorContext, state: Any) -> Iterator[Firing]:
    ticks = last_ticks(context.instance, state, _MOST_TICKS)
    last = next((tick for tick in ticks if _reached_code(tick)), None)
    kind, name = state.instigator_type.value.lower(), state.instigator_name
    key = f"{kind} {name}"
    if last is None and key in context.state.open:
        # It is unknown whether it still fails.
        yield context.state.open[key].firing
    if last is None or last.status.value != _FAILURE:
        return
    feeds = [
        feed for feed in context.feeds if name in (f"{feed.name}_files", f"{feed.name}_batch")
    ]
    table = feeds[0].table if feeds else ""
    lines, commands = [reason_of(last.error, context.declared.get(table))], ["lakehouse doctor"]
    if feeds or name == FEEDS_SENSOR:
        which = f"feed {feeds[0].name}" if feeds else "all feeds"
        lines.append(f"Files of {which} are not ingested automatically until it succeeds.")
        commands.insert(0, " ".join(["lakehouse ingest", *(feed.name for feed in feeds)]))
    origin = state.origin.repository_origin
    location = f"{origin.repository_name}@{origin.code_location_origin.location_name}"
    yield context.firing(
        key,
        "automation",
        datetime.fromtimestamp(last.timestamp, UTC),
        f"{kind} {name} fails",
        lines=lines,
        links=[f"Ticks: {context.ui_url}/locations/{location}/{kind}s/{name}"],
        commands=commands,
        table=table,
        # The next tick of a sensor follows within seconds, that of a schedule in a day.
        heals=kind == "sensor",
    )


def _reached_code(tick: Any) -> bool:
    """Whether a tick has finished and reached the code server."""
    kind, text = _UNREACHABLE
    return tick.status.value != _STARTED and not any(
        cause.cls_name == _NO_LOCATION or (cause.cls_name == kind and text in cause.message)
        for cause in causes(tick.error)
    )


def names_of(repository: dg.RepositoryDefinition) -> set[str]:
    """Return the names of the declared sensors and schedules."""
    return {sensor.name for sensor in repository.sensor_defs} | {
        schedule.name for schedule in repository.schedule_defs
    }
