"""`@iceberg_asset`: a declared table and its function as a Dagster asset."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input, declared_inputs
from lakehouse.iceberg.read.pinned_inputs import partition_appends
from lakehouse.iceberg.read.row_version_inputs import versioned_inputs, with_version_reads
from lakehouse.iceberg.read.rows_outside_partitions import evaluate_by_metadata, has_partition
from lakehouse.iceberg.read.stale_partitions import partition_only_sources
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Outcome, RuleResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import reads_metadata
from lakehouse.orchestration.failure_texts import in_one_line
from lakehouse.orchestration.functions.function_code import default_code_version
from lakehouse.orchestration.functions.sql_function import SqlFunction
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.load_validation import check_partitions
from lakehouse.orchestration.partitions.partition_bounds import (
    all_partitions_of,
    asset_partitions,
)
from lakehouse.orchestration.table_asset import Evaluate, Written, table_asset
from lakehouse.orchestration.table_function import TableFunction, keep_function
from lakehouse.orchestration.table_jobs.compute_in_job import compute_in_job
from lakehouse.orchestration.written_metadata import suppression_warnings
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, IcebergTable, Merge, Overwrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


COLUMN_LINEAGE = "dagster/column_lineage"
"""Dagster's metadata key."""


def lineage_metadata(
    table: IcebergTable, inputs: Mapping[str, Input]
) -> dict[str, dg.TableColumnLineage]:
    """Return the column lineage of a table with `rows_of`; empty without it, never guessed."""
    raw = table.rows_of
    if raw is None or raw.name not in {declared.table for declared in inputs.values()}:
        return {}
    lineage: dict[str, list[dg.TableColumnDep]] = {}
    for column in table.columns:
        names = (column.name, *column.renamed_from)
        sources = [name for name in names if name in raw.column_names]
        if sources and column.cast and column.name != table.stamp:
            lineage[column.name] = [dg.TableColumnDep(asset_key(raw.name), sources[0])]
    return {COLUMN_LINEAGE: dg.TableColumnLineage(lineage)} if lineage else {}


def check_appended_once(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Reject an append of rows that inputs can provide again, without an idempotent key.

    :raises DeclarationError: names the table, its inputs and the expected value.
    """
    if not inputs or not isinstance(table.write, Append) or table.once_by:
        return
    read = ", ".join(
        f"{name} ({declared.mode} of {declared.table})" for name, declared in inputs.items()
    )
    raise DeclarationError(
        f"{table.name}: Append(once_by=()) adds the rows of each run, and its inputs are"
        f" {read}, of which a later run may read the same rows again; expected the columns that"
        " make a row happen once.",
        next_step=(
            f"Name them, such as Append(once_by=({table.column_names[0]!r},)), or write by"
            " Merge(on=…)."
        ),
    )


def check_existing_rows(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Reject partition overwrites by new rows only, and `existing_rows` of another table.

    :raises DeclarationError: names the table, its inputs and the expected value.
    """
    foreign = sorted(
        name
        for name, declared in inputs.items()
        if declared.mode == "existing_rows" and declared.table != table.name
    )
    if foreign:
        raise DeclarationError(
            f"{table.name}: the input {', '.join(foreign)} reads existing_rows of another table;"
            f" expected {table.name}.",
            next_step="Read another table by latest(…).",
        )
    added = sorted(partition_appends(inputs))
    if added and not _keeps_rows(inputs) and table.overwritten_by:
        raise DeclarationError(
            f"{table.name} overwrites partitions, and its input {', '.join(added)} has only"
            " their new rows; the existing rows would be lost.",
            next_step=(
                f"Add an input existing_rows({table.name!r}, by={table.overwritten_by!r}), or read"
                " latest(…)."
            ),
        )


def check_overwrite_inputs(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Reject overwrites by new rows only, which would lose the rows of earlier runs.

    :param inputs: with version reads.
    :raises DeclarationError: names the table, its inputs and the expected value.
    """
    if isinstance(table.write, Overwrite) and not _keeps_rows(inputs):
        incremental_names = [
            name for name, declared in inputs.items() if declared.mode == "incremental"
        ]
        loss = "the existing rows would be lost"
        next_step = "Read latest(…), or write the table by Merge(on=…)."
    elif table.overwritten_by:
        incremental_names = [
            name
            for name, declared in inputs.items()
            if declared.mode == "incremental" and not declared.by
        ]
        loss = "a run of some partitions would lose the new rows of other partitions"
        next_step = "Read latest(…), or name the partition column in by=…."
    else:
        return
    if incremental_names:
        raise DeclarationError(
            f"{table.name} is overwritten, and its input {', '.join(incremental_names)} has only"
            f" rows that arrived since the last run; {loss}.",
            next_step=next_step,
        )


def check_rows_of(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Check that a table reads the table of its `rows_of`.

    :raises DeclarationError: names both tables and the inputs.
    """
    source = table.rows_of
    read = dict.fromkeys(declared.table for declared in inputs.values())
    if source is None or source.name in read:
        return
    raise DeclarationError(
        f"{table.name} has rows_of={source.name}, and reads {', '.join(read) or 'nothing'};"
        f" expected {source.name} among its inputs.",
        next_step="Read it, such as by versions_of(…) or incremental(…), or leave rows_of out.",
    )


def check_versions(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Check that a table can keep the newest versions of a versioned input.

    :raises DeclarationError: names the table, the input, the actual and the expected value.
    """
    for name, declared in versioned_inputs(inputs).items():
        owner = f"{table.name}: input {name} is versions_of({declared.table!r})"
        if isinstance(table.write, Append):
            raise DeclarationError(
                f"{owner}, and the table is appended to, which cannot replace earlier versions;"
                " expected Merge, Overwrite or OverwritePartitions.",
                next_step="Write the table by Merge(on=…), or read incremental(…).",
            )
        if table.versions is None and not isinstance(table.write, Merge):
            raise DeclarationError(
                f"{owner}, and the table does not declare what a version is; expected"
                " versions=Versions(of=…, newest=…).",
                next_step="Name the key in of=, and in newest= the columns that order versions.",
            )
        if table.overwritten_by and not declared.by:
            raise DeclarationError(
                f"{owner}, and the table is overwritten by partitions of"
                f" {table.overwritten_by}; expected by=…, the partition column.",
                next_step=f"Write versions_of({declared.table!r}, by=…).",
            )
        own = [
            other
            for other, other_input in inputs.items()
            if other_input.mode == "existing_rows"
        ]
        if own:
            raise DeclarationError(
                f"{owner}, for which the table's own rows are read already; expected no input"
                f" {', '.join(own)}.",
                next_step="Remove it from inputs=….",
            )


def _keeps_rows(inputs: Mapping[str, Input]) -> bool:
    """Whether existing rows of the overwritten partitions are read, and can be written again."""
    return any(
        declared.mode == "existing_rows" and not declared.outside
        for declared in inputs.values()
    )


def iceberg_asset(
    table: IcebergTable,
    *,
    inputs: Mapping[str, Input | IcebergTable] | None = None,
    partitions_def: dg.PartitionsDefinition | None = None,
    code_version: str | None = None,
) -> "Callable[[Callable[..., DataFrame]], dg.AssetsDefinition]":
    """Make a Dagster asset of the function that computes a table.

    The docstring of the function is the description in Dagster.

    :param table: the table to compute.
    :param inputs: DataFrames by parameter name, pinned at the start of the run. A table means
        `latest(table)`. For a partitioned table, inputs with `by` determine the stale
        partitions.
    :param partitions_def: for a table that is not written by `by_hour`, `by_day` or `by_month`.
    :param code_version: default: a digest of the function's module and of the project modules
        that it imports. Rows of another version are shown as older code.
    :raises DeclarationError: the parameters do not match the inputs, existing rows would be
        deleted, or no input determines the partitions.
    """
    declared = declared_inputs(table.name, inputs or {})
    partitions = asset_partitions(table, partitions_def)

    def decorate(compute: "Callable[..., DataFrame]") -> dg.AssetsDefinition:
        reads = _checked_reads(table, compute, declared, partitions)
        implied = _implied(table, reads, partitions)

        def materialize(context: dg.AssetExecutionContext, run: Run) -> Written:
            written = _compute(context, table, compute, declared, run, implied)
            for warning in suppression_warnings(written.outcome.suppressed_rows):
                context.log.warning(warning)
            return replace(
                written,
                metadata={**lineage_metadata(table, declared), **written.metadata},
                read=_read(written.outcome, table, reads),
            )

        asset = table_asset(
            table,
            materialize,
            description=inspect.getdoc(compute),
            deps=_upstream(table, reads),
            kinds=frozenset({"sql"} if isinstance(compute, SqlFunction) else ()),
            metadata=reads_metadata(reads),
            implied=implied,
            partitions_def=partitions,
            code_version=code_version or default_code_version(compute, declared),
        )
        function = TableFunction(table, compute, declared, partitions)
        return keep_function(asset, function)

    return decorate


def _checked_reads(
    table: IcebergTable,
    compute: Callable[..., Any],
    inputs: Mapping[str, Input],
    partitions: dg.PartitionsDefinition | None,
) -> Mapping[str, Input]:
    """Return all inputs that are read, including implied ones; check them."""
    _check_parameters(table, compute, inputs)
    check_rows_of(table, inputs)
    check_versions(table, inputs)
    reads = with_version_reads(table, inputs)
    check_existing_rows(table, reads)
    check_appended_once(table, reads)
    check_overwrite_inputs(table, reads)
    check_partitions(table, reads, partitions)
    return reads


def _compute(
    context: dg.AssetExecutionContext,
    table: IcebergTable,
    compute: "Callable[..., DataFrame]",
    inputs: Mapping[str, Input],
    run: Run,
    implied: Collection[Rule],
) -> Written:
    io: IcebergIOManager = context.resources.io_manager
    job = io.jobs.job_of(table.name)
    if job and io.jobs.settings:
        return Written(*compute_in_job(context, io.jobs.settings, table, run, job, implied))
    with in_one_line(table, compute):
        return Written(io.write(table, compute, inputs, run))


def _implied(
    table: IcebergTable, inputs: Mapping[str, Input], definition: dg.PartitionsDefinition | None
) -> dict[Rule, Evaluate]:
    """Return the rule that partition-only inputs imply, and the function that evaluates it."""
    if definition is None or not partition_only_sources(table, inputs):
        return {}

    def evaluate(io: IcebergIOManager, run: Run) -> list[RuleResult]:
        every = run.partitions.every if run.partitions else all_partitions_of(table, definition)
        return evaluate_by_metadata(io.engine, table, inputs, every)

    return {has_partition(table): evaluate}


def _upstream(table: IcebergTable, inputs: Mapping[str, Input]) -> list[dg.AssetKey]:
    read = dict.fromkeys(declared.table for declared in inputs.values())
    return [asset_key(name) for name in read if name != table.name]


def _read(
    outcome: Outcome, table: IcebergTable, inputs: Mapping[str, Input]
) -> dict[str, int | None]:
    """Return the snapshots of other tables that were read at their state in this run."""
    pins = (pin for name, pin in outcome.pins.items() if inputs[name].mode != "as_of")
    return {pin.table: pin.snapshot_id for pin in pins if pin.table != table.name}


def _check_parameters(
    table: IcebergTable, compute: Callable[..., Any], inputs: Mapping[str, Input]
) -> None:
    parameters = list(inspect.signature(compute).parameters)
    if set(parameters) != set(inputs):
        raise DeclarationError(
            f"{table.name}: the function {compute.__name__} takes"
            f" {', '.join(parameters) or 'nothing'}; expected the inputs,"
            f" {', '.join(inputs) or 'none'}.",
            next_step="Name its parameters as the keys of inputs=….",
        )
