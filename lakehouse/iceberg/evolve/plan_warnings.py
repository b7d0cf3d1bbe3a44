"""Warnings about a declaration, which do not prevent its application."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from lakehouse.iceberg.evolve.matched_columns import renamed_columns
from lakehouse.iceberg.evolve.partition_count import PartitionCount, count_partitions
from lakehouse.iceberg.metadata.iceberg_release import IcebergRelease
from lakehouse.iceberg.metadata.table_size import TableSize
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.tables.partitioning import PartitionField
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable
from lakehouse.tables.table_properties import metrics_properties, table_properties
from lakehouse.tables.upkeep import in_days

SNAPSHOT_DAYS = (7, 30)
"""A shorter retention leaves too little time to notice and revert a mistake; a longer one keeps
replaced files longer than needed.
"""
MANY_PARTITION_FIELDS = 3
MANY_TINY = ((100, 32 * 1024), (1000, 1024 * 1024))
"""Minimum number of partitions and maximum average bytes: opening files then dominates reads.
"""
_FINE_GRAINED = ("float", "double", "timestamp", "timestamp_ntz")
_COARSER = {"hours": "days", "days": "months", "months": "years"}


def warnings(
    table: IcebergTable,
    state: TableState | None,
    iceberg: IcebergRelease,
    read_by: Collection[str] = (),
) -> Iterator[str]:
    """Yield the warnings; `state` is None if the table does not exist.

    :param iceberg: the release that writes the table.
    :param read_by: columns whose partitions other tables read.
    """
    yield from _partition_warnings(table)
    yield from _upkeep_warnings(table)
    yield from _z_order_warnings(table, iceberg)
    yield from _format_warnings(table)
    yield from _version_warnings(table)
    if state is not None:
        yield from _count_warnings(table, state, read_by)
        yield from _case_warnings(table, state)
        yield from _personal_warnings(table, state)
        yield from _swap_warnings(table, state)


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


def _count_warnings(
    table: IcebergTable, state: TableState, read_by: Collection[str]
) -> Iterator[str]:
    if state.size is None or not table.partition_fields or not state.size.rows:
        return
    former_names = {new: old for old, new in renamed_columns(table, state).items()}
    present = {column.name.lower(): column for column in state.columns}
    fields, column_types = [], []
    for field in table.partition_fields:
        column = present.get(former_names.get(field.column, field.column).lower())
        if column is None:
            return
        fields.append(replace(field, column=column.name))
        column_types.append(str(column.type))
    partition_count = count_partitions(fields, column_types, state.size)
    mean_bytes = state.size.size_bytes // partition_count.partitions
    if not any(
        partition_count.partitions >= many and mean_bytes < tiny for many, tiny in MANY_TINY
    ):
        return
    finest, most_values = None, 1
    for field, values in zip(
        table.partition_fields, partition_count.values.values(), strict=True
    ):
        if values > most_values and not _is_needed(table, field, read_by):
            finest, most_values = field, values
    if finest:
        yield _count_warning(table, partition_count, state.size, finest)


def _is_needed(table: IcebergTable, field: PartitionField, read_by: Collection[str]) -> bool:
    """Whether runs overwrite or read exactly the partitions of a field."""
    is_used = field.column == table.overwritten_by or field.column in read_by
    return is_used and field.transform in ("identity", "days")


def _count_warning(
    table: IcebergTable,
    partition_count: PartitionCount,
    size: TableSize,
    finest: PartitionField,
) -> str:
    mean_kb = max(1, round(size.size_bytes / partition_count.partitions / 1024))
    number = (
        f"{partition_count.partitions}"
        if partition_count.is_exact
        else f"about {partition_count.partitions}"
    )
    return (
        f"{table.name}: partitioning by {', '.join(map(str, table.partition_fields))} makes"
        f" {number} partitions of its {size.rows} rows, with {mean_kb} kB each on average;"
        f" that many tiny files are slow to plan and to read. Leave out {finest}, or declare"
        f" {_coarser(table, finest)} in its place."
    )


def _coarser(table: IcebergTable, field: PartitionField) -> str:
    column_type = table.column(field.column).type
    if field.transform == "bucket":
        return f"fewer buckets than {field.width}"
    if field.transform == "truncate":
        return (
            "fewer letters"
            if column_type == "string"
            else f"a greater width than {field.width}"
        )
    if field.transform in _COARSER:
        return f"{_COARSER[field.transform]}({field.column})"
    if column_type == "date":
        return f"months({field.column})"
    if column_type == "timestamp":
        return f"days({field.column})"
    if column_type in _FINE_GRAINED:
        return "a bucket of another column"
    return f"a bucket of {field.column}"


def _case_warnings(table: IcebergTable, state: TableState) -> Iterator[str]:
    declared = {name.lower(): name for name in table.column_names}
    for column in state.columns:
        name = declared.get(column.name.lower(), column.name)
        if name != column.name:
            yield (
                f"{table.name} has the column {column.name}, declared as {name}; Spark treats"
                " them as equal and cannot rename the column, but other engines distinguish them."
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


def _swap_warnings(table: IcebergTable, state: TableState) -> Iterator[str]:
    """Warn about each cycle of columns that are declared as renamed into each other.

    The table has all of these names before and after the swap, so its state is unknown. If the
    newest former name is a third one, the swap was done through it.
    """
    if state.is_empty:
        return
    present = {column.name.lower() for column in state.columns}
    names = {name.lower(): name for name in table.column_names}
    newest = {}
    for column in table.columns:
        name, former = column.name.lower(), column.renamed_from[-1:]
        if former and {name, former[0].lower()} <= present and former[0].lower() != name:
            newest[name] = former[0].lower()
    for ring in _rings(newest):
        renamed = ", ".join(f"{names[name]} from {names[newest[name]]}" for name in ring)
        yield (
            f"{table.name} declares {renamed} as renamed, and has columns of all these names:"
            " it is unknown whether they were swapped already, and none is"
            f" renamed. To swap them, rename {names[ring[0]]} to a third name and the others by"
            " one apply, and the third name by the next; then put it last in renamed_from to"
            " remove this warning."
        )


def _rings(newest: Mapping[str, str]) -> Iterator[list[str]]:
    seen: set[str] = set()
    for start in newest:
        path: list[str] = []
        name = start
        while name in newest and name not in seen:
            seen.add(name)
            path.append(name)
            name = newest[name]
        if name in path:
            yield path[path.index(name) :]
