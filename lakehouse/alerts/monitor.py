"""Runs all detectors. One that fails is an incident itself, and does not stop the rest.

Rows in quarantine are one incident per table, until the quarantine is empty or it is closed.
The quarantine itself is read, since checks of later runs do not cover its rows; and only if its
snapshot changed, after the run that wrote it has finished: the share of rows is unknown before.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType

from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.alerts.check_facts import incident_key, last_evaluation
from lakehouse.alerts.failed_ticks import detect_failed_ticks
from lakehouse.alerts.failure_reasons import remove_values
from lakehouse.alerts.incidents import Firing, Observed, Resolved
from lakehouse.alerts.monitor_context import MonitorContext, describe_rows
from lakehouse.alerts.overdue_tables import detect_overdue
from lakehouse.alerts.rejected_inbox_files import detect_rejected_files
from lakehouse.alerts.run_events import detect_run_events
from lakehouse.iceberg.metadata.snapshots import History, history_of
from lakehouse.iceberg.read.quarantined_rows import QuarantinedRows, count_quarantined
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.incident_reports import Note, read_reports
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.table import IcebergTable

CURSOR = "quarantined"
_SHOWN_RULES = 5
_SAMPLED_RULES = 3


def detect_quarantined_rows(context: MonitorContext) -> Observed:
    """Return the tables with rows in quarantine, if that changed."""
    known: Mapping[str, str] = context.state.cursors.get(CURSOR, {})
    facts: list[Firing | Resolved] = []
    cursor: dict[str, str] = {}
    for table in context.declared.values():
        cursor[table.name] = known.get(table.name, "")
        quarantine = table.quarantine
        if quarantine is None or not context.catalog.has(quarantine.name):
            cursor[table.name] = ""
            how = f"{table.name} has no quarantine any more."
            facts.append(Resolved(_key(table), context.now, how))
            continue
        # It identifies the version.
        location = context.catalog.metadata_location(quarantine.name)
        if not location or location == cursor[table.name]:
            continue
        loaded = context.catalog.load(quarantine.name)
        history = history_of(quarantine.name, loaded)
        if _is_being_written(context, history):
            continue
        cursor[table.name] = loaded.metadata_location
        if history.main and history.main.rows:
            counts = count_quarantined(context.catalog, table)
            facts.append(_firing(context, table, history, counts))
        else:
            how = "The quarantine is empty."
            facts.append(Resolved(_key(table), context.now, how))
    return Observed(tuple(facts), cursors={CURSOR: cursor})


def _key(table: IcebergTable) -> str:
    return f"quarantined {table.name}"


def _is_being_written(context: MonitorContext, history: History) -> bool:
    last = history.last_write
    run_id = last.commit.run_id if last and last.commit else ""
    run = context.instance.get_run_by_id(run_id) if run_id else None
    return run is not None and not run.is_finished


def _firing(
    context: MonitorContext, table: IcebergTable, history: History, counts: QuarantinedRows
) -> Firing:
    # If the newest rows were removed, the incident shows the remaining ones.
    known = context.state.open.get(_key(table))
    times = (counts.last_at, known.last_at if known else None)
    sampled = _sampled_checks(context, table, counts)
    samples = (CheckMetadata.from_metadata(one.metadata).sample for one in sampled)
    rows = [sample[0] for sample in samples if sample]
    newest = f"SELECT * FROM {history.table} ORDER BY _quarantined_at DESC LIMIT 20"
    last = history.last_write
    return context.firing(
        _key(table),
        "quarantined",
        max(filter(None, times), default=context.now),
        f"{table.name}: {_count(counts.rows)} in quarantine",
        lines=(
            f"{_describe_share(context, table, counts)}.",
            *describe_rows(rows, table.masked_columns),
        ),
        commands=(
            f'lakehouse sql "{newest}"',
            f"lakehouse quarantine {table.name}",
            f"lakehouse mute {table.name} --until 2h",
        ),
        severity="warn",
        table=table.name,
        run_id=last.commit.run_id if last and last.commit else "",
        size=counts.rows,
    )


def _describe_share(
    context: MonitorContext, table: IcebergTable, counts: QuarantinedRows
) -> str:
    total = counts.rows
    if context.catalog.has(table.name):
        main = history_of(table.name, context.catalog.load(table.name)).main
        total += main.rows if main else 0
    rules = [f"{rule.name} {rule.rows:,}" for rule in counts.by_rule[:_SHOWN_RULES]]
    share = f"{counts.rows:,} of {_count(total)} ({counts.rows / total:.2%})"
    return f"{share}, by rule: {', '.join(rules)}"


def _sampled_checks(
    context: MonitorContext, table: IcebergTable, counts: QuarantinedRows
) -> list[AssetCheckEvaluation]:
    """Return the last evaluations of the rules that reject most rows."""
    keys = [AssetCheckKey(asset_key(table.name), rule.name or "") for rule in counts.by_rule]
    evaluations = [last_evaluation(context.instance, key) for key in keys[:_SAMPLED_RULES]]
    return [evaluation for evaluation in evaluations if evaluation]


def _count(rows: int) -> str:
    return f"{rows:,} row" if rows == 1 else f"{rows:,} rows"


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
