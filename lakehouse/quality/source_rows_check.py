"""The check that is always there: what became of the rows that a table was computed from, where
it keeps these.
"""

from collections.abc import Iterable, Iterator, Mapping

import dagster as dg

from lakehouse.iceberg.metadata.commit_properties import Stamp
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import Input, pin_since
from lakehouse.iceberg.write.prepared_frame import SOURCE_COLUMNS
from lakehouse.orchestration.asset_inputs import inputs_of
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.blocked_tables import note_check_failed
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.quality.row_accounting_check import (
    NAME,
    accounted_check,
    partitions_of,
    written_by,
)
from lakehouse.quality.rows_by_source import PLACES, Read, places
from lakehouse.tables.table import IcebergTable

_SAID = {
    "clean": "in the table",
    "quarantined": "quarantined",
    "superseded": "superseded",
    "left_out": "left out by the function",
    "twice": "in the table and in the quarantine",
}


def default_checks(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec], declared: Mapping[str, IcebergTable]
) -> list[dg.AssetChecksDefinition]:
    """Make the check of each table that keeps the source of its rows and reads tables that do;
    none has it twice.
    """
    computed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    known = {
        key.asset_key for asset in computed for key in asset.check_keys if key.name == NAME
    }
    specs = [spec for asset in computed for spec in asset.specs]
    made = (_default_check(spec, declared) for spec in specs if spec.key not in known)
    return [check for check in made if check]


def _default_check(
    spec: dg.AssetSpec, declared: Mapping[str, IcebergTable]
) -> dg.AssetChecksDefinition | None:
    target = declared.get(table_name(spec.key))
    if target is None or not _keeps_source(target):
        return None
    given = dict(_followed(inputs_of(spec.metadata).values(), target, declared))
    by = [(source, one.by) for source, one in given.items() if one.by]
    may_lose_none = target.versions is not None and not target.versions.may_leave_out
    if (
        may_lose_none
        and target.quarantine
        and target.overwritten_by
        and len(by) == 1
        and by[0][1]
    ):
        return accounted_check(declared[by[0][0]], target, by=by[0][1])
    return source_check(target, given) if given else None


def _followed(
    inputs: Iterable[Input], target: IcebergTable, declared: Mapping[str, IcebergTable]
) -> Iterator[tuple[str, Input]]:
    for given in inputs:
        source = declared.get(given.table)
        is_followed = (
            given.mode in ("incremental", "latest")
            and not given.outside
            and given.table != target.name
        )
        if source is not None and is_followed and _keeps_source(source):
            yield given.table, given


def _keeps_source(table: IcebergTable) -> bool:
    return set(SOURCE_COLUMNS) <= set(table.column_names)


def source_check(target: IcebergTable, inputs: Mapping[str, Input]) -> dg.AssetChecksDefinition:
    """Make the check that no row of some sources is in a table and in its quarantine, and that
    counts all others.

    In a run that computed the table it looks at what that run read; alone, at all that the
    table was computed from.

    :param inputs: how each source is read, by its name.
    """

    @dg.asset_check(
        asset=asset_key(target.name),
        name=NAME,
        description=(
            f"Each row of {', '.join(inputs)} is in {target.name} or in its quarantine, was"
            " superseded, or is counted as left out by the function."
        ),
        blocking=True,
        required_resource_keys={"io_manager"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        engine = context.resources.io_manager.engine
        history = read_history(engine, target.name) if engine.catalog.has(target.name) else None
        read_rows = _read_rows(engine, history, inputs, context.run.run_id) if history else {}
        found = places(engine, target, read_rows) if read_rows else dict.fromkeys(PLACES, 0)
        if found["twice"]:
            note_check_failed(context.instance, context.run.run_id, target.name)
        return _result(found)

    return check


def _read_rows(
    engine: Engine, history: History, inputs: Mapping[str, Input], run_id: str
) -> dict[str, Read]:
    mine = written_by(history, run_id)
    found = {source: _read(engine, history, mine, given) for source, given in inputs.items()}
    return {source: one for source, one in found.items() if one}


def _read(engine: Engine, history: History, mine: Snapshot | None, given: Input) -> Read | None:
    """Return what a run's commit read of a source; of none, all that the table was computed
    from.
    """
    if mine is None or mine.stamp is None:
        until = history.watermark(given.table)
        return Read(Pin(given.table, until)) if until else None
    stamp = mine.stamp
    until = stamp.read.get(given.table) or stamp.inputs.get(given.table)
    if until is None:
        return None
    since = (
        stamp.since.get(given.table) if stamp.read else _watermark_before(history, stamp, given)
    )
    where = partitions_of(stamp).predicate(given.by) if stamp.read and given.by else None
    if since is None:
        return Read(Pin(given.table, until), where)
    return Read(pin_since(read_history(engine, given.table), since, until), where)


def _watermark_before(history: History, stamp: Stamp, given: Input) -> int | None:
    if given.mode != "incremental":
        return None
    before = (
        found.stamp
        for found in history.line
        if found.stamp and found.stamp.write_id != stamp.write_id
    )
    return next(
        (found.inputs[given.table] for found in before if given.table in found.inputs), None
    )


def _result(found: Mapping[str, int]) -> dg.AssetCheckResult:
    total = sum(found.values())
    return dg.AssetCheckResult(
        passed=not found["twice"],
        severity=dg.AssetCheckSeverity.ERROR,
        description=", ".join(f"{found[place]} {_SAID[place]}" for place in PLACES)
        + f", of {total} source rows.",
        metadata={
            **CheckMetadata(
                failed_rows=found["twice"],
                total_rows=total,
                threshold=0.0,
                predicate="a row of the source is in the table and in its quarantine",
            ).to_metadata(),
            **{f"{place}_rows": found[place] for place in PLACES},
        },
    )
