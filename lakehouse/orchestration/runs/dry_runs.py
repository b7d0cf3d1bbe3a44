"""Dry runs of a table: a staged run that is dropped, and a run on given rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.iceberg.write.trial import ReadOther, Trial, compute_given, judge
from lakehouse.iceberg.write.write_audit_publish import checked
from lakehouse.iceberg.write.write_preview import preview
from lakehouse.orchestration.failure_texts import in_one_line
from lakehouse.orchestration.io_manager import run_partitions
from lakehouse.orchestration.table_function import TableFunction
from lakehouse.orchestration.withheld_values import values_withheld
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def preview_table(
    engine: Engine,
    function: TableFunction,
    look: Callable[[str], None],
    suppression: SuppressionList,
) -> Outcome:
    """Compute a table in full without publishing; see `lakehouse.iceberg.write.write_preview`.

    :raises UsageError: a feed fills the table.
    """
    table, name = function.table, function.table.name
    if function.feed:
        raise UsageError(
            f"{name} is filled by the feed {function.feed.name}; expected a table that is"
            " computed from others.",
            next_step=f"`lakehouse try {name} --file FILE` shows what becomes of a file.",
        )
    definition, partitions = function.partitions_def, None
    if definition:
        partitions = run_partitions(definition, definition.get_partition_keys(), table)
    run = Run(partitions=partitions, reads_everything=partitions is None)
    with (
        values_withheld(table),
        in_one_line(table, function.compute, f"lakehouse preview {name}"),
    ):
        return preview(
            engine, table, function.compute, function.inputs, run, look, suppression=suppression
        )


def try_function(
    engine: Engine,
    function: TableFunction,
    given: "Mapping[str, DataFrame]",
    existing: "DataFrame | None",
    *,
    keys: Sequence[str] = (),
    read_other: ReadOther,
    keep: Keep = keep_on_one_machine,
) -> Trial:
    """Compute a table from DataFrames of its inputs, and evaluate its rules.

    :param given: rows by input name; for a feed's table, the delivered rows by parameter name.
    :param existing: rows of the table; None if it is empty.
    :param keys: partitions of the run; without any, all rows are computed.
    :param read_other: returns the rows of another table that a rule refers to, or None.
    :param keep: caches the computed rows during the dry run.
    :raises UsageError: an input has no rows, or the table has no such partitions.
    :raises FrameMismatch: the function does not return the declared columns.
    """
    table, partitions = function.table, _partitions(function, keys)
    compute = checked(table, function.compute)
    if function.feed:
        frame = compute(**given)
    else:
        there = no_rows(engine.spark, table) if existing is None else existing
        frame = compute_given(table, compute, function.inputs, given, there, partitions)
    return judge(
        engine,
        table,
        frame,
        partitions,
        is_first=existing is None,
        read_other=read_other,
        keep=keep,
    )


def no_rows(spark: "SparkSession", table: IcebergTable) -> "DataFrame":
    """Return an empty DataFrame with the columns of a table."""
    columns = (
        f"CAST(NULL AS {column.type}) AS {identifier(column.name)}" for column in table.columns
    )
    return spark.sql(f"SELECT {', '.join(columns)}").where("false")


def _partitions(function: TableFunction, keys: Sequence[str]) -> Partitions | None:
    if not keys:
        return None
    definition, name = function.partitions_def, function.table.name
    if definition is None:
        raise UsageError(
            f"{name} has no partitions, and was given {', '.join(keys)}; expected none."
        )
    unknown = [key for key in keys if not definition.has_partition_key(key)]
    if unknown:
        raise UsageError(
            f"{name} has no partition {unknown[0]}; expected one of {type(definition).__name__}."
        )
    return run_partitions(definition, keys, function.table)
