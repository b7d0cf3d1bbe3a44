"""Detects requests to erase people that are due within a week or late, and failed runs."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.alerts.failure_reasons import reason_of
from lakehouse.alerts.incidents import Firing, Observed, Resolved, moment_text
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.privacy.requests import (
    Request,
    failed_run,
    finished_at,
    read_requests,
)

SOON = timedelta(days=7)
"""Notice before a request is due."""


def detect_late_requests(context: MonitorContext) -> Observed:
    """Return the current and resolved incidents; reads no table."""
    requests = {one.request_id: one for one in read_requests(context.settings)}
    facts: list[Firing | Resolved] = []
    for request in requests.values():
        if not request.is_final:
            facts += _firings(context, request)
    facts += _resolved(context, requests, {fact.key for fact in facts})
    return Observed(tuple(facts), frozenset({"erasure"}))


def _firings(context: MonitorContext, request: Request) -> Iterator[Firing]:
    due = request.due_at
    if context.now >= due - SOON:
        title = f"is due by {moment_text(due)}"
        yield _firing(context, request, "due", due - SOON, title, severity="warn")
    if request.is_late(context.now):
        yield _firing(context, request, "late", due, f"is late: it was due by {due.date()}")
    yield from _failed(context, request)


def _failed(context: MonitorContext, request: Request) -> Iterator[Firing]:
    last = failed_run(context.instance, request)
    if last is None or last.dagster_run.status is not dg.DagsterRunStatus.FAILURE:
        return
    run_id, of_type = last.dagster_run.run_id, dg.DagsterEventType.STEP_FAILURE
    reasons = [
        reason_of(entry.get_dagster_event().step_failure_data.error, None)
        for entry in events_of_run(context.instance, run_id, of_type)
    ]
    yield _firing(
        context,
        request,
        "failed",
        finished_at(last),
        "could not be completed by its last run",
        lines=[reasons[0] if reasons else "Its run ended without a reason."],
        run_id=run_id,
    )


def _firing(
    context: MonitorContext,
    request: Request,
    what: str,
    at: datetime,
    title: str,
    *,
    lines: Iterable[str] = (),
    **details: Any,
) -> Firing:
    return context.firing(
        f"erasure {request.request_id} {what}",
        "erasure",
        at,
        f"request {request.request_id} {title}",
        lines=(*lines, *_state_lines(request)),
        commands=_commands(request),
        **details,
    )


def _state_lines(request: Request) -> Iterator[str]:
    yield f"It is {request.state}: {_state(request)}."
    for one in request.unreachable:
        yield f"{one.place}: its operator has to erase it."
    yield f"It is due by {moment_text(request.due_at)}, a month after it was made."


def _state(request: Request) -> str:
    if request.state == "requested":
        return "readers can still see its people"
    if request.state == "exception":
        return "places outside of the lakehouse have to be erased by their owners"
    if request.state == "pending_physical" and request.physical_due_at:
        due_at = moment_text(request.physical_due_at)
        return f"readers do not see its people, and files can be removed from {due_at} on"
    return "readers do not see its people, and it is not proved yet"


def _commands(request: Request) -> Sequence[str]:
    command = f"lakehouse erase --request {request.request_id}"
    if request.state == "exception":
        command = f"{command} --elsewhere-done"
    return (command, f"lakehouse erasures {request.request_id}")


def _resolved(
    context: MonitorContext, requests: dict[str, Request], firing: set[str]
) -> Iterator[Resolved]:
    """Yield resolved incidents, with the state of their request."""
    for key, incident in context.state.open.items():
        if incident.firing.kind != "erasure" or key in firing:
            continue
        _, request_id, _ = key.split(" ")
        request = requests.get(request_id)
        how = f"Request {request_id} is {request.state}." if request else "It does not exist."
        yield Resolved(key, context.now, how)
