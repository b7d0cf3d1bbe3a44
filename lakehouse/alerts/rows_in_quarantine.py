"""Rows in quarantine: one incident per table, until its quarantine is empty or it is closed.

The quarantine itself is read, since checks of later runs do not cover its rows; and only if its
snapshot changed, after the run that wrote it has finished: the share of rows is unknown before.
"""

from collections.abc import Mapping

from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.alerts.failed_checks import last_evaluation
from lakehouse.alerts.incidents import Firing, Observed, Resolved
from lakehouse.alerts.monitor_context import MonitorContext, describe_rows
from lakehouse.alerts.mutes import mute_command
from lakehouse.iceberg.metadata.snapshots import History, history_of
from lakehouse.iceberg.read.quarantined_rows import QuarantinedRows, count_quarantined
from lakehouse.orchestration.asset_keys import asset_key
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
            mute_command(table.name),
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
