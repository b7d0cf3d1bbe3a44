"""What is worth knowing of a declaration before it is carried out, though it is no reason to
refuse it.
"""

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
"""Fewer days leave too little time to notice a mistake and to go back; with more, each change
keeps the bytes of what it replaced for longer than anybody looks.
"""
MANY_PARTITION_FIELDS = 3
MANY_TINY = ((100, 32 * 1024), (1000, 1024 * 1024))
"""So many partitions, of less than so many bytes on average: then most of a read is the opening
of files.
"""
_FINE_GRAINED = ("float", "double", "timestamp", "timestamp_ntz")
_COARSER = {"hours": "days", "days": "months", "months": "years"}


def warnings(
    table: IcebergTable,
    state: TableState | None,
    iceberg: IcebergRelease,
    read_by: Collection[str] = (),
) -> Iterator[str]:
    """Yield one sentence for each; `state` is None where there is no table yet.

    :param iceberg: what is to write it.
    :param read_by: the columns whose partitions other tables read.
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
    # Nobody travels in time in what runs append, and each append costs more the more snapshots
    # are kept.
    if kept < timedelta(days=least) and not table.is_log_of_runs:
        yield (
            f"{table.name} keeps snapshots for {in_days(kept)}, after which nothing of before"
            f" can be read or restored; expected {least} to {most} days."
        )
    elif kept > timedelta(days=most):
        yield (
            f"{table.name} keeps snapshots for {in_days(kept)}, and for as long the files that"
            f" were replaced since; expected {least} to {most} days."
        )
    if policy.kept_by == "glue":
        yield (
            f"{table.name} is left to Glue's table optimizers, which apply does not make:"
            " without them nobody compacts it, expires its snapshots or removes its orphans;"
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
    # PyIceberg 0.12, DuckDB 1.5.5 and Polars 2.1 were tried. What AWS reads is said at
    # https://docs.aws.amazon.com/prescriptive-guidance/latest/apache-iceberg-on-aws/table-spec-v3.html
    yield (
        f"{table.name} is of format version 3, for good once it is. Amazon Athena does not read"
        " it, nor does Spark of EMR before 7.12 and of Glue 5.0; PyIceberg, DuckDB and Polars"
        " do, and PyIceberg does not write it."
    )


def _version_warnings(table: IcebergTable) -> Iterator[str]:
    """Yield a sentence where rows without a key, which are versions of one another, pass the rules:
    all but one of them are in no table.
    """
    of = table.versions.of if table.versions else ()
    if not of or any(_must_have_value(table, name) for name in of):
        return
    rules = ", ".join(f"not_null({name!r})" for name in of)
    yield (
        f"{table.name}: rows without a value in {', '.join(of)} are versions of one another, of"
        f" which one alone is kept, and no rule refuses them; {rules} among the rules sends each"
        " to the quarantine."
    )


def _must_have_value(table: IcebergTable, name: str) -> bool:
    """Whether a column of the table is filled by the machine, or a rule holds rows back that have
    no value in it.
    """
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
    counted = count_partitions(fields, column_types, state.size)
    mean_bytes = state.size.size_bytes // counted.partitions
    if not any(counted.partitions >= many and mean_bytes < tiny for many, tiny in MANY_TINY):
        return
    finest, most_values = None, 1
    for field, values in zip(table.partition_fields, counted.values.values(), strict=True):
        if values > most_values and not _is_needed(table, field, read_by):
            finest, most_values = field, values
    if finest:
        yield _count_warning(table, counted, state.size, finest)


def _is_needed(table: IcebergTable, field: PartitionField, read_by: Collection[str]) -> bool:
    """Whether runs replace or read exactly the partitions of a field."""
    is_used = field.column == table.overwritten_by or field.column in read_by
    return is_used and field.transform in ("identity", "days")


def _count_warning(
    table: IcebergTable, counted: PartitionCount, size: TableSize, finest: PartitionField
) -> str:
    mean_kb = max(1, round(size.size_bytes / counted.partitions / 1024))
    number = f"{counted.partitions}" if counted.is_exact else f"about {counted.partitions}"
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
                f"{table.name} has the column {column.name}, declared as {name}; Spark takes"
                " them for the same and cannot rename one to the other, but other engines tell"
                " them apart."
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
    """Yield a sentence for each ring of columns that are declared as renamed into each other.

    The table has all of them before they are swapped and after, so that it does not tell which it
    is. Where the newest former name is a third one, they were swapped by way of it.
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
            " whether they are to be swapped or were it already cannot be told, and none is"
            f" renamed. To swap them, rename {names[ring[0]]} to a third name and the others by"
            " one apply, and the third name by the next; then name it last in renamed_from,"
            " which ends this warning."
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
