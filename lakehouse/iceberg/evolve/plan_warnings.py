"""Warnings about a declaration, which do not prevent its application."""

from collections.abc import Iterator
from datetime import timedelta

from lakehouse.iceberg.metadata.iceberg_release import IcebergRelease
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable
from lakehouse.tables.table_properties import metrics_properties, table_properties
from lakehouse.tables.upkeep import in_days

SNAPSHOT_DAYS = (7, 30)
"""A shorter retention leaves too little time to notice and revert a mistake; a longer one keeps
replaced files longer than needed.
"""
MANY_PARTITION_FIELDS = 3
_FINE_GRAINED = ("float", "double", "timestamp", "timestamp_ntz")


def warnings(
    table: IcebergTable,
    state: TableState | None,
    iceberg: IcebergRelease,
) -> Iterator[str]:
    """Yield the warnings; `state` is None if the table does not exist.

    :param iceberg: the release that writes the table.
    """
    yield from _partition_warnings(table)
    yield from _upkeep_warnings(table)
    yield from _z_order_warnings(table, iceberg)
    yield from _format_warnings(table)
    yield from _version_warnings(table)
    if state is not None:
        yield from _personal_warnings(table, state)


def _partition_warnings(table: IcebergTable) -> Iterator[str]:
    for field in table.partition_fields:
        declared = table.column(field.column).type
        if field.transform == "identity" and declared in _FINE_GRAINED:
            coarser = (
                "days(…)"
                if declared.startswith("timestamp")
                else "truncate or bucket of another column"
            )
            yield (
                f"{table.name} is partitioned by each value of {field.column} ({declared}),"
                f" which makes many tiny partitions; {coarser} makes fewer."
            )
    if len(table.partition_fields) > MANY_PARTITION_FIELDS:
        yield (
            f"{table.name} is partitioned by {len(table.partition_fields)} fields, which makes"
            f" many tiny partitions; {MANY_PARTITION_FIELDS} are many already."
        )


def _upkeep_warnings(table: IcebergTable) -> Iterator[str]:
    policy = table.upkeep_policy
    kept, (least, most) = policy.keep_snapshots_for, SNAPSHOT_DAYS
    # Time travel is not needed for logs of runs, and each append costs more with more
    # snapshots.
    if kept < timedelta(days=least) and not table.is_log_of_runs:
        yield (
            f"{table.name} keeps snapshots for {in_days(kept)}, after which earlier rows"
            f" cannot be read or restored; expected {least} to {most} days."
        )
    elif kept > timedelta(days=most):
        yield (
            f"{table.name} keeps snapshots for {in_days(kept)}, and replaced files"
            f" for as long; expected {least} to {most} days."
        )
    if policy.kept_by == "glue":
        yield (
            f"{table.name} is left to Glue's table optimizers, which apply does not make:"
            " without them it is not compacted, and keeps all snapshots and orphan files;"
            " see docs/upkeep.md, Left to Glue."
        )


def _z_order_warnings(table: IcebergTable, iceberg: IcebergRelease) -> Iterator[str]:
    policy = table.upkeep_policy
    if not policy.z_order:
        return
    if not policy.sort_by:
        yield f"{table.name} declares z_order, and no columns for it; expected sort_by too."
    columns = {name: table.column(name).type for name in policy.sort_by}
    if lacking := iceberg.lacks_z_order_of(columns):
        yield f"{table.name} declares z_order, and {lacking}: upkeep sorts by its columns in turn."


def _format_warnings(table: IcebergTable) -> Iterator[str]:
    if table_properties(table)["format-version"] != "3":
        return
    # Tested with PyIceberg 0.12, DuckDB 1.5.5 and Polars 2.1. Support by AWS is documented at
    # https://docs.aws.amazon.com/prescriptive-guidance/latest/apache-iceberg-on-aws/table-spec-v3.html
    yield (
        f"{table.name} is of format version 3, for good once it is. Amazon Athena does not read"
        " it, nor does Spark of EMR before 7.12 and of Glue 5.0; PyIceberg, DuckDB and Polars"
        " do, and PyIceberg does not write it."
    )


def _version_warnings(table: IcebergTable) -> Iterator[str]:
    """Warn if no rule rejects rows without a version key: all but one of them would be lost."""
    of = table.versions.of if table.versions else ()
    if not of or any(_must_have_value(table, name) for name in of):
        return
    rules = ", ".join(f"not_null({name!r})" for name in of)
    yield (
        f"{table.name}: rows without a value in {', '.join(of)} are versions of one another, of"
        f" which only one is kept, and no rule rejects them; declare {rules} to quarantine them."
    )


def _must_have_value(table: IcebergTable, name: str) -> bool:
    """Whether a column always has a value, or a rule rejects rows without one."""
    if name in SOURCE_COLUMNS or table.column(name).required:
        return True
    return any(
        name in rule.columns and not rule.cast and "NULL" in rule.predicate().upper()
        for rule in table.row_rules
        if rule.on_failure != "warn"
    )


def _personal_warnings(table: IcebergTable, state: TableState) -> Iterator[str]:
    if state.is_empty:
        return
    present = {column.name.lower() for column in state.columns}
    for name in sorted(table.personal_columns):
        kept = any(
            state.properties.get(key) != "none" for key in metrics_properties(table, name)
        )
        if name.lower() in present and kept:
            yield (
                f"{table.name}: {name} is personal from now on; the bounds of its values in the"
                " metadata of files already written stay until those files are rewritten and"
                " their snapshots have expired."
            )
