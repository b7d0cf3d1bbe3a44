"""Runs all detectors. One that fails is an incident itself, and does not stop the rest."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType

from lakehouse.alerts.failed_and_blocked_runs import detect_run_events
from lakehouse.alerts.failed_checks import incident_key
from lakehouse.alerts.failed_ticks import detect_failed_ticks
from lakehouse.alerts.failure_reasons import remove_values
from lakehouse.alerts.incidents import Firing, Observed, Resolved
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.overdue_tables import detect_overdue
from lakehouse.alerts.rejected_inbox_files import detect_rejected_files
from lakehouse.alerts.rows_in_quarantine import detect_quarantined_rows
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.incident_reports import Note, read_reports

Detector = Callable[[MonitorContext], Observed]
NO_DETECTORS: Mapping[str, Detector] = MappingProxyType({})


def run_detectors(
    context: MonitorContext, further: Mapping[str, Detector] = NO_DETECTORS
) -> Observed:
    """Return all facts of one round.

    :param further: detectors of other capabilities, by the noun that they monitor.
    """
    detectors: Mapping[str, Detector] = {
        "quarantines": detect_quarantined_rows,
        "runs": detect_run_events,
        "freshness": detect_overdue,
        "rejected files": detect_rejected_files,
        "sensors and schedules": detect_failed_ticks,
        "reports": detect_reported,
        "removed declarations": detect_removed,
        **further,
    }
    observed = Observed(complete=frozenset({"monitor"}))
    for noun, detect in detectors.items():
        try:
            observed += detect(context)
        except Exception as error:
            # Any error of the storage, the catalog or the bucket: an operator must know that
            # nothing is monitored there.
            observed += Observed((_detector_failed(context, noun, error),))
    return observed


def _detector_failed(context: MonitorContext, noun: str, error: Exception) -> Firing:
    key = f"monitoring {noun}"
    known = context.state.open.get(key)
    frame = extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return Firing(
        key,
        "monitor",
        known.firing.at if known else context.now,
        "error",
        f"{noun} cannot be monitored",
        (
            f"{type(error).__name__}: {remove_values(str(error))} ({where})",
            "Failures there are sent once it works again.",
        ),
        commands=("lakehouse doctor",),
        heals=True,
    )


def detect_reported(context: MonitorContext) -> Observed:
    """Return what other processes reported since the last round, see `incident_reports`."""
    seen: Mapping[str, str] = context.state.cursors.get("reported", {})
    notes = read_reports(context.settings)
    new = [note for note in notes if note.at.isoformat() > seen.get(note.report.key, "")]
    last = {note.report.key: note.at.isoformat() for note in notes}
    facts = [fact for note in new for fact in _reported_facts(context, note)]
    return Observed(tuple(facts), cursors={"reported": last})


def _reported_facts(context: MonitorContext, note: Note) -> Iterator[Firing | Resolved]:
    report, key = note.report, f"reported {note.report.key}"
    if note.published_run:
        run = context.instance.get_run_by_id(note.published_run)
        partitions = context.partitions_of_run(report.table, run) if run else frozenset()
        for kind in ("blocked", "failed"):
            key = f"{kind} {report.table}"
            yield Resolved(key, note.at, note.resolved, partitions)
        return
    if note.resolved:
        yield Resolved(key, note.at, note.resolved)
        return
    yield context.firing(
        key,
        "reported",
        note.at,
        report.title,
        lines=report.lines,
        commands=report.commands,
        severity=report.severity,
        table=report.table,
    )


def detect_removed(context: MonitorContext) -> Observed:
    """Return the incidents of checks, tables and feeds that are no longer declared."""
    checks = {incident_key(key) for key in context.graph.asset_check_keys}
    feeds = {f"failed feed {feed.name}" for feed in context.feeds}
    resolved = []
    for key, incident in context.state.open.items():
        kind, table = incident.firing.kind, incident.firing.table
        # A declared table without an asset has maintenance and a quarantine, but no runs.
        is_table = table in context.declared and kind not in ("blocked", "failed")
        is_removed = bool(table) and not is_table and not context.graph.has(asset_key(table))
        if kind == "check":
            is_removed = key not in checks
        elif key.startswith("failed feed "):
            is_removed = key not in feeds
        if is_removed:
            resolved.append(Resolved(key, context.now, "It is no longer declared."))
    return Observed(tuple(resolved))
