"""Rows in quarantine: one incident for each table, from when rows come until none is there, or
a person closes it.

What stands there is asked of the quarantine itself, and not of the checks of a run: the next
good file, a check of what readers see, or a rejected file say nothing of the rows that are
there. Its rows are read only where it has another snapshot than in the last round, and once the
run that made it has published the table: of what share the rows are is not known before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of
from lakehouse.iceberg.metadata.quarantine_counts import QuarantinedRows, quarantined_rows
from lakehouse.iceberg.read.cleared_rows import clearing_said
from lakehouse.iceberg.read.withdrawn_deliveries import rejection_said
from lakehouse.monitoring.detectors.failed_checks import (
    clear_commands,
    figures_of,
    is_evaluation,
)
from lakehouse.monitoring.detectors.monitor_context import MonitorContext, describe_rows
from lakehouse.monitoring.incidents import Firing, Observed, Resolved, moment_text
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import check_executions
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

CURSOR = "quarantined"
_NAMED = 5
_SAMPLED_RULES = 3


@dataclass(frozen=True)
class _QuarantineState:
    """What is known of a quarantine from one round to the next."""

    snapshot_id: str
    counts: QuarantinedRows
    total_rows: int
    """How many rows came so far, those that are gone again among them."""
    metadata_location: str = ""
    """Where the quarantine's metadata was; nothing where that is not known."""


def detect_quarantined_rows(context: MonitorContext) -> Observed:
    """Return which tables have rows in quarantine now."""
    catalog = context.catalog
    open_now = context.state.open
    cursor: Mapping[str, Any] = context.state.cursors.get(CURSOR, {})
    known = {name: _from_json(state) for name, state in cursor.items()}
    facts: list[Firing | Resolved] = []
    seen: dict[str, Any] = {}
    for table in context.declared.values():
        before, key = known.get(table.name), quarantine_key(table.name)
        if before and key not in open_now and _is_still_empty(catalog, table, before):
            seen[table.name] = cursor[table.name]
            continue
        loaded = _loaded(catalog, table)
        if table.quarantine is None or loaded is None:
            continue
        history = history_of(table.quarantine.name, loaded)
        if history.main is None:
            continue
        if _is_being_written(context, catalog, table, history):
            if before:
                seen[table.name] = _to_json(before)
            if key in open_now:
                facts.append(open_now[key].firing)
            continue
        state = _read_state(catalog, history, before)
        state = replace(state, metadata_location=loaded.metadata_location)
        seen[table.name] = _to_json(state)
        facts += _facts(context, catalog, table, history, state)
    return Observed(tuple(facts), frozenset({"quarantined"}), {CURSOR: seen})


def quarantine_key(table: str) -> str:
    """Return what the rows in quarantine of a table are known by."""
    return f"quarantined {table}"


def _is_still_empty(catalog: Catalog, table: IcebergTable, before: _QuarantineState) -> bool:
    """Whether a quarantine had no rows in the last round, and nobody wrote to it since."""
    quarantine = table.quarantine
    if quarantine is None or before.counts.rows or not before.metadata_location:
        return False
    return catalog.metadata_location(quarantine.name) == before.metadata_location


def _loaded(catalog: Catalog, table: IcebergTable) -> "Table | None":
    quarantine = table.quarantine
    if quarantine is None or not catalog.has(quarantine.name):
        return None
    return catalog.load(quarantine.name)


def _is_being_written(
    context: MonitorContext, catalog: Catalog, table: IcebergTable, history: History
) -> bool:
    """Whether the run that wrote the quarantine goes on, and has not published the table's
    other rows yet.
    """
    last = history.last_write
    run_id = last.commit.run_id if last and last.commit else ""
    run = context.instance.get_run_by_id(run_id) if run_id else None
    if run is None or run.is_finished:
        return False
    if not catalog.has(table.name):
        return True
    for snapshot in history_of(table.name, catalog.load(table.name)).line:
        if snapshot.commit and snapshot.commit.run_id == run_id:
            return False
    return True


def _read_state(
    catalog: Catalog, history: History, known: _QuarantineState | None
) -> _QuarantineState:
    assert history.main is not None
    snapshot_id = str(history.main.snapshot_id)
    if known and known.snapshot_id == snapshot_id:
        return known
    since = known.counts.newest_at if known else None
    total_rows = known.total_rows if known else 0
    if history.main.rows == 0:
        return _QuarantineState(snapshot_id, QuarantinedRows(newest_at=since), total_rows)
    counts = quarantined_rows(catalog.load(history.table), since)
    newest_at = max(filter(None, (since, counts.newest_at)), default=None)
    counts = replace(counts, newest_at=newest_at)
    return _QuarantineState(snapshot_id, counts, total_rows + counts.new_rows)


def _facts(
    context: MonitorContext,
    catalog: Catalog,
    table: IcebergTable,
    history: History,
    state: _QuarantineState,
) -> Iterator[Firing | Resolved]:
    open_now = context.state.open
    key = quarantine_key(table.name)
    if not state.counts.rows:
        how, run_id = _describe_emptying(history)
        links = context.links(run_id=run_id, table=history.table)
        yield Resolved(key, context.now, how, links=links)
    elif key in open_now and open_now[key].firing.state == state.snapshot_id:
        yield open_now[key].firing
    else:
        yield _firing(context, catalog, table, history, state)


def _describe_emptying(history: History) -> tuple[str, str]:
    """Say what took the last rows out, by whom and why, and which run it was, as far back as
    snapshots are kept.
    """
    last = list(takewhile(lambda snapshot: snapshot.rows == 0, history.line))[-1]
    if last.is_erasure:
        return "The quarantine is empty: its last rows were of people who were erased.", ""
    said = rejection_said(last.summary) or clearing_said(last.summary)
    if said:
        return f"The quarantine is empty: {said}", ""
    run_id = last.commit.run_id if last.commit else ""
    since = f" since run {run_id[:8]}" if run_id else ""
    return f"The quarantine is empty{since}.", run_id


def _firing(
    context: MonitorContext,
    catalog: Catalog,
    table: IcebergTable,
    history: History,
    state: _QuarantineState,
) -> Firing:
    counts, quarantine = state.counts, history.table
    run_id = _run_id(history, counts.newest_at)
    share = _describe_share(catalog, table, counts)
    sampled = _evaluations(context, table, counts)
    return Firing(
        quarantine_key(table.name),
        "quarantined",
        counts.newest_at or context.now,
        "warn",
        f"{table.name}: {_rows(counts.rows)} in quarantine",
        (
            share,
            *_describe_newest(counts),
            *describe_rows(_one_of_each(sampled), table.masked_columns, len(sampled)),
            *context.describe_ownership(table.name),
        ),
        context.links(run_id=run_id, table=quarantine),
        (
            *clear_commands(sampled),
            (
                f'lakehouse sql "SELECT * FROM {quarantine} ORDER BY _quarantined_at DESC'
                ' LIMIT 20"'
            ),
            f"lakehouse quarantine {table.name}",
            f"lakehouse mute {table.name} --until 2h",
        ),
        table.name,
        context.owner(table.name),
        run_id,
        size=state.total_rows,
        causes=tuple(sorted(counts.by_rule)),
        brief=share.removesuffix("."),
        state=state.snapshot_id,
    )


def _describe_share(catalog: Catalog, table: IcebergTable, counts: QuarantinedRows) -> str:
    total = counts.rows
    if catalog.has(table.name):
        main = history_of(table.name, catalog.load(table.name)).main
        total += main.rows if main else 0
    rules = [f"{rule} {rows:,}" for rule, rows in counts.by_rule.items()]
    return (
        f"{counts.rows:,} of {_rows(total)} ({counts.rows / total:.2%}), by rule:"
        f" {_first_named(rules, 'rules')}."
    )


def _first_named(names: list[str], noun: str) -> str:
    more = f" and {len(names) - _NAMED} {noun} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _describe_newest(counts: QuarantinedRows) -> Iterator[str]:
    if counts.newest_at is None or not counts.newest_files:
        return
    files = [name for name in counts.newest_files if name != "None"]
    source = f" with {_first_named(files, 'files')}" if files else ""
    number = sum(counts.newest_files.values())
    rows = _rows(number) if number > 1 else "row"
    yield f"The newest {rows} came at {moment_text(counts.newest_at)}{source}."


def _evaluations(
    context: MonitorContext, table: IcebergTable, counts: QuarantinedRows
) -> list[AssetCheckEvaluation]:
    """Return the last evaluations of the rules that most rows break: their samples are what is
    shown.
    """
    evaluations: list[AssetCheckEvaluation] = []
    for rule in list(counts.by_rule)[:_SAMPLED_RULES]:
        key = AssetCheckKey(asset_key(table.name), rule)
        for record in check_executions(context.instance, key, limit=1):
            event = record.event.dagster_event if record.event else None
            if is_evaluation(event):
                evaluations.append(event.asset_check_evaluation_data)
    return evaluations


def _one_of_each(evaluations: list[AssetCheckEvaluation]) -> Iterator[Mapping[str, Any]]:
    """Yield the first row of each sample, then the second: the first of one may be that of
    another too.
    """
    samples = [figures_of(evaluation).sample for evaluation in evaluations]
    for rows in zip_longest(*samples):
        yield from (row for row in rows if row is not None)


def _run_id(history: History, newest_at: datetime | None) -> str:
    """Return the run that brought the newest rows: the first to commit after they were
    refused.
    """
    run_id = ""
    for snapshot in history.line:
        is_later = newest_at is None or snapshot.committed_at >= newest_at
        if is_later and snapshot.commit and snapshot.commit.kind == "write":
            run_id = snapshot.commit.run_id
    return run_id


def _rows(number: int) -> str:
    return f"{number:,} row" if number == 1 else f"{number:,} rows"


def _to_json(state: _QuarantineState) -> dict[str, Any]:
    counts = state.counts
    at = counts.newest_at.isoformat() if counts.newest_at else None
    return {
        "snapshot_id": state.snapshot_id,
        "came": state.total_rows,
        "found": {**counts.__dict__, "newest_at": at},
        "metadata": state.metadata_location,
    }


def _from_json(cursor: Mapping[str, Any]) -> _QuarantineState:
    counts = cursor["found"]
    at = datetime.fromisoformat(counts["newest_at"]) if counts["newest_at"] else None
    return _QuarantineState(
        cursor["snapshot_id"],
        QuarantinedRows(**{**counts, "newest_at": at}),
        cursor["came"],
        cursor.get("metadata", ""),
    )
