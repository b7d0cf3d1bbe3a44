"""Rows in quarantine: one thing for each table, from when rows come until none is left, or a
person says so.

What stands there is asked of the quarantine itself, and not of the checks of a run: the next
good file, a check of what readers see, or a rejected file say nothing of the rows that are
there. Its rows are read only where it has another snapshot than at the last look, and once the
run that made it has published the table: of what share the rows are is not known before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile, zip_longest
from typing import Any

from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of
from lakehouse.iceberg.metadata.quarantine_counts import QuarantinedRows, quarantined_rows
from lakehouse.iceberg.read.withdrawn_deliveries import rejection_said
from lakehouse.monitoring.detectors.failed_checks import (
    figures_of,
    in_clear,
    is_evaluation,
    key_of,
)
from lakehouse.monitoring.detectors.sources import MonitorContext, shown_rows
from lakehouse.monitoring.incidents import Firing, Incident, Observed, Resolved, moment_text
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.tables.table import IcebergTable

CURSOR = "quarantined"
_NAMED = 5
_SAMPLED_RULES = 3


@dataclass(frozen=True)
class _Standing:
    """What is known of a quarantine from one look to the next."""

    snapshot_id: str
    found: QuarantinedRows
    came: int
    """How many rows came so far, those that left again among them."""


def look_for_quarantined(
    context: MonitorContext, cursors: Mapping[str, Any], open_now: Mapping[str, Incident]
) -> Observed:
    """Return which tables have rows in quarantine now."""
    catalog = Catalog.of(context.settings)
    known = {name: _from_json(one) for name, one in cursors.get(CURSOR, {}).items()}
    facts: list[Firing | Resolved] = []
    seen: dict[str, Any] = {}
    for table in context.declared.values():
        history = _history(catalog, table)
        if history is None or history.main is None:
            continue
        before, key = known.get(table.name), quarantine_key(table.name)
        if _is_being_written(context, catalog, table, history):
            seen |= {table.name: _to_json(before)} if before else {}
            facts += [open_now[key].firing] if key in open_now else []
            continue
        standing = _standing(catalog, table, history, before)
        seen[table.name] = _to_json(standing)
        facts += _facts(context, catalog, table, history, standing, open_now)
    return Observed(tuple(facts), frozenset({"quarantined"}), {CURSOR: seen})


def quarantine_key(table: str) -> str:
    """Return what the rows in quarantine of a table are known by."""
    return f"quarantined {table}"


def _history(catalog: Catalog, table: IcebergTable) -> History | None:
    quarantine = table.quarantine
    if quarantine is None or not catalog.has(quarantine.name):
        return None
    return history_of(quarantine.name, catalog.load(quarantine.name))


def _is_being_written(
    context: MonitorContext, catalog: Catalog, table: IcebergTable, history: History
) -> bool:
    """Whether the run that wrote the quarantine goes on, and has not published the table's
    other rows yet.
    """
    last = history.last_write
    run_id = last.stamp.run_id if last and last.stamp else ""
    run = context.instance.get_run_by_id(run_id) if run_id else None
    if run is None or run.is_finished:
        return False
    line = (
        history_of(table.name, catalog.load(table.name)).line if catalog.has(table.name) else ()
    )
    return not any(one.stamp and one.stamp.run_id == run_id for one in line)


def _standing(
    catalog: Catalog, table: IcebergTable, history: History, known: _Standing | None
) -> _Standing:
    assert table.quarantine is not None
    assert history.main is not None
    snapshot_id = str(history.main.snapshot_id)
    if known and known.snapshot_id == snapshot_id:
        return known
    since = known.found.newest_at if known else None
    if history.main.rows == 0:
        return _Standing(
            snapshot_id, QuarantinedRows(newest_at=since), known.came if known else 0
        )
    found = quarantined_rows(catalog.load(table.quarantine.name), since)
    newest_at = max(filter(None, (since, found.newest_at)), default=None)
    return _Standing(
        snapshot_id,
        replace(found, newest_at=newest_at),
        (known.came if known else 0) + found.new_rows,
    )


def _facts(
    context: MonitorContext,
    catalog: Catalog,
    table: IcebergTable,
    history: History,
    standing: _Standing,
    open_now: Mapping[str, Incident],
) -> Iterator[Firing | Resolved]:
    key = quarantine_key(table.name)
    if not standing.found.rows:
        said, run_id = _emptied(history)
        links = context.links(run_id=run_id, table=history.table)
        yield Resolved(key, context.now, said, links=links)
    elif key in open_now and open_now[key].firing.state == standing.snapshot_id:
        yield open_now[key].firing
    else:
        yield _firing(context, catalog, table, history, standing)
    for rule in table.quarantining_rules:
        # Told by an earlier version, one for each rule.
        earlier = open_now.get(key_of(AssetCheckKey(asset_key(table.name), rule.name)))
        if earlier and earlier.firing.severity == "warn":
            yield Resolved(
                earlier.firing.key, context.now, "Its rows are told of as those in quarantine."
            )


def _emptied(history: History) -> tuple[str, str]:
    """Say what took the last rows out, by whom and why, and which run it was, as far back as
    snapshots are kept.
    """
    last = list(takewhile(lambda one: one.rows == 0, history.line))[-1]
    rejected, run_id = rejection_said(last.summary), last.stamp.run_id if last.stamp else ""
    if rejected:
        return f"The quarantine is empty: {rejected}", ""
    return (
        (f"The quarantine is empty since run {run_id[:8]}.", run_id)
        if run_id
        else ("The quarantine is empty.", "")
    )


def _firing(
    context: MonitorContext,
    catalog: Catalog,
    table: IcebergTable,
    history: History,
    standing: _Standing,
) -> Firing:
    assert table.quarantine is not None
    found, quarantine = standing.found, table.quarantine.name
    run_id, share = _run_id(history, found.newest_at), _share(catalog, table, found)
    sampled = _evaluations(context, table, found)
    return Firing(
        quarantine_key(table.name),
        "quarantined",
        found.newest_at or context.now,
        "warn",
        f"{table.name}: {_rows(found.rows)} in quarantine",
        (
            share,
            *_newest(found),
            *shown_rows(_one_of_each(sampled), table.masked_columns, len(sampled)),
            *context.whose(table.name),
        ),
        context.links(run_id=run_id, table=quarantine),
        (
            *in_clear(sampled),
            (
                f'lakehouse sql "SELECT * FROM {quarantine} ORDER BY _quarantined_at DESC'
                ' LIMIT 20"'
            ),
            f"lakehouse mute {table.name} --until 2h",
        ),
        table.name,
        context.owner(table.name),
        run_id,
        size=standing.came,
        causes=tuple(sorted(found.by_rule)),
        brief=share.removesuffix("."),
        state=standing.snapshot_id,
    )


def _share(catalog: Catalog, table: IcebergTable, found: QuarantinedRows) -> str:
    main = (
        history_of(table.name, catalog.load(table.name)).main
        if catalog.has(table.name)
        else None
    )
    total = found.rows + (main.rows if main else 0)
    rules = [f"{rule} {rows:,}" for rule, rows in found.by_rule.items()]
    more = f" and {len(rules) - _NAMED} rules more" if len(rules) > _NAMED else ""
    return (
        f"{found.rows:,} of {_rows(total)} ({found.rows / total:.2%}), by rule:"
        f" {', '.join(rules[:_NAMED])}{more}."
    )


def _newest(found: QuarantinedRows) -> Iterator[str]:
    if found.newest_at is None or not found.newest_files:
        return
    names = [name for name in found.newest_files if name != "None"]
    more = f" and {len(names) - _NAMED} files more" if len(names) > _NAMED else ""
    rows = sum(found.newest_files.values())
    came = f" with {', '.join(names[:_NAMED])}{more}" if names else ""
    yield (
        f"The newest {_rows(rows) if rows > 1 else 'row'} came at"
        f" {moment_text(found.newest_at)}{came}."
    )


def _evaluations(
    context: MonitorContext, table: IcebergTable, found: QuarantinedRows
) -> list[AssetCheckEvaluation]:
    """Return the last evaluations of the rules that most rows break: their samples are what is
    shown.
    """
    evaluations: list[AssetCheckEvaluation] = []
    for rule in list(found.by_rule)[:_SAMPLED_RULES]:
        key = AssetCheckKey(asset_key(table.name), rule)
        records = context.instance.event_log_storage.get_asset_check_execution_history(
            key, limit=1
        )
        events = (record.event.dagster_event for record in records if record.event is not None)
        evaluations += [
            event.asset_check_evaluation_data for event in events if is_evaluation(event)
        ]
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
    since = [one for one in history.line if newest_at is None or one.committed_at >= newest_at]
    runs = [one.stamp.run_id for one in since if one.stamp and one.stamp.kind == "write"]
    return runs[-1] if runs else ""


def _rows(number: int) -> str:
    return f"{number:,} row" if number == 1 else f"{number:,} rows"


def _to_json(standing: _Standing) -> dict[str, Any]:
    found = standing.found
    at = found.newest_at.isoformat() if found.newest_at else None
    return {
        "snapshot_id": standing.snapshot_id,
        "came": standing.came,
        "found": {**found.__dict__, "newest_at": at},
    }


def _from_json(said: Mapping[str, Any]) -> _Standing:
    found = said["found"]
    at = datetime.fromisoformat(found["newest_at"]) if found["newest_at"] else None
    return _Standing(
        said["snapshot_id"], QuarantinedRows(**{**found, "newest_at": at}), said["came"]
    )
