"""The default check of tables that keep source columns: account for the source rows."""

from collections.abc import Iterable, Mapping

import dagster as dg

from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_inputs import pin_since
from lakehouse.orchestration.asset_inputs import inputs_of
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.quality.erased_rows import CLEARED, ERASED
from lakehouse.quality.row_accounting_check import (
    NAME,
    accounted_check,
    kept_state,
    partitions_of,
    rows_check,
    rows_result,
)
from lakehouse.quality.rows_by_source import PLACES, Read, count_places
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

_DESCRIPTIONS = {
    "clean": "in the table",
    "quarantined": "quarantined",
    "superseded": "superseded",
    "left_out": "left out by the function",
    "twice": "in the table and in the quarantine",
    CLEARED: "cleared from the quarantine",
    ERASED: "erased",
}


def default_checks(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec], declared: Mapping[str, IcebergTable]
) -> list[dg.AssetChecksDefinition]:
    """Make the undeclared checks of tables that keep source columns and read such tables."""
    computed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    checked = set()
    for asset in computed:
        checked |= {key.asset_key for key in asset.check_keys if key.name == NAME}
    checks = []
    for asset in computed:
        for spec in asset.specs:
            check = None if spec.key in checked else _default_check(spec, declared)
            if check:
                checks.append(check)
    return checks


def _default_check(
    spec: dg.AssetSpec, declared: Mapping[str, IcebergTable]
) -> dg.AssetChecksDefinition | None:
    target = declared.get(table_name(spec.key))
    if target is None or not _keeps_source(target):
        return None
    inputs = _followed_inputs(inputs_of(spec.metadata).values(), target, declared)
    if not inputs:
        return None
    by = [(source, followed.by) for source, followed in inputs.items() if followed.by]
    may_lose_none = target.versions is not None and not target.versions.may_leave_out
    if may_lose_none and target.quarantine and target.overwritten_by and len(by) == 1:
        source, column = by[0]
        return accounted_check(declared[source], target, by=column)
    return source_check(target, inputs)


def _followed_inputs(
    inputs: Iterable[Input], target: IcebergTable, declared: Mapping[str, IcebergTable]
) -> dict[str, Input]:
    followed = {}
    for table_input in inputs:
        source = declared.get(table_input.table)
        is_followed = (
            table_input.mode in ("incremental", "latest")
            and not table_input.outside
            and table_input.table != target.name
        )
        if source is not None and is_followed and _keeps_source(source):
            followed[table_input.table] = table_input
    return followed


def _keeps_source(table: IcebergTable) -> bool:
    return set(SOURCE_COLUMNS) <= set(table.column_names)


def source_check(target: IcebergTable, inputs: Mapping[str, Input]) -> dg.AssetChecksDefinition:
    """Make the check that no source row is both in a table and in its quarantine, and count the
    others.

    In a run that computed the table, it covers what that run read; otherwise, everything that
    the table was computed from.

    :param inputs: the input declarations by source table.
    """

    def evaluate(
        engine: Engine,
        history: History | None,
        snapshot: Snapshot | None,
        gone: SuppressionList,
    ) -> dg.AssetCheckResult:
        reads = []
        if history is not None:
            for table_input in inputs.values():
                source_rows = _read(engine, history, snapshot, table_input)
                if source_rows is not None:
                    reads.append(source_rows)
        if not reads:
            return _places_result(dict.fromkeys(PLACES, 0))
        return _places_result(count_places(engine, target, reads, gone))

    return rows_check(
        target,
        f"Each row of {', '.join(inputs)} is in {target.name} or in its quarantine, was"
        " superseded, or is counted as left out by the function.",
        evaluate,
    )


def _read(
    engine: Engine, history: History, snapshot: Snapshot | None, table_input: Input
) -> Read | None:
    """Return what a run's commit read from a source; without one, all that was computed."""
    source = table_input.table
    if snapshot is None or snapshot.commit is None:
        until = kept_state(engine, source, history.watermark(source))
        return Read(Pin(source, until)) if until else None
    commit = snapshot.commit
    until = commit.read.get(source) or commit.inputs.get(source)
    if until is None:
        return None
    where = None
    if commit.read:
        since = commit.since.get(source)
        if table_input.by:
            where = partitions_of(commit).predicate(table_input.by)
    else:
        since = _watermark_before(history, commit, table_input)
    if since is None:
        return Read(Pin(source, until), where)
    return Read(pin_since(read_history(engine, source), since, until), where)


def _watermark_before(
    history: History, commit: CommitProperties, table_input: Input
) -> int | None:
    if table_input.mode != "incremental":
        return None
    for snapshot in history.line:
        earlier = snapshot.commit
        if (
            earlier
            and earlier.write_id != commit.write_id
            and table_input.table in earlier.inputs
        ):
            return earlier.inputs[table_input.table]
    return None


def _places_result(rows: Mapping[str, int]) -> dg.AssetCheckResult:
    counts = ", ".join(f"{count} {_DESCRIPTIONS[place]}" for place, count in rows.items())
    return rows_result(
        rows,
        "twice",
        "a row of the source is in the table and in its quarantine",
        f"{counts}, of {sum(rows.values())} source rows.",
    )
