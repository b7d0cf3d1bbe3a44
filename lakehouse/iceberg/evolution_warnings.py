"""What is worth knowing of a declaration before it is carried out, though it is no reason to refuse it."""

from collections.abc import Iterator

from lakehouse.iceberg.state import TableState
from lakehouse.iceberg.table import IcebergTable

MANY_PARTITION_FIELDS = 3
_FINE_GRAINED = ("float", "double", "timestamp", "timestamp_ntz")


def warnings(table: IcebergTable, state: TableState | None) -> Iterator[str]:
    """Yield one sentence for each; `state` is None where there is no table yet."""
    yield from _partition_warnings(table)
    if state is not None:
        yield from _case_warnings(table, state)
        yield from _personal_warnings(table, state)


def _partition_warnings(table: IcebergTable) -> Iterator[str]:
    for field in table.partition_fields:
        declared = table.column(field.column).type
        if field.transform == "identity" and declared in _FINE_GRAINED:
            coarser = "days(…)" if declared.startswith("timestamp") else "truncate or bucket of another column"
            yield (
                f"{table.name} is partitioned by each value of {field.column} ({declared}), which makes many tiny "
                f"partitions; {coarser} makes fewer."
            )
    if len(table.partition_fields) > MANY_PARTITION_FIELDS:
        yield (
            f"{table.name} is partitioned by {len(table.partition_fields)} fields, which makes many tiny partitions; "
            f"{MANY_PARTITION_FIELDS} are many already."
        )


def _case_warnings(table: IcebergTable, state: TableState) -> Iterator[str]:
    declared = {name.lower(): name for name in table.column_names}
    for column in state.columns:
        name = declared.get(column.name.lower(), column.name)
        if name != column.name:
            yield (
                f"{table.name} has the column {column.name}, declared as {name}; Spark takes them for the same and "
                "cannot rename one to the other, but other engines tell them apart."
            )


def _personal_warnings(table: IcebergTable, state: TableState) -> Iterator[str]:
    if state.is_empty:
        return
    present = {column.name.lower() for column in state.columns}
    for name in sorted(table.personal_columns):
        kept = any(state.properties.get(key) != "none" for key in table.metrics_properties(name))
        if name.lower() in present and kept:
            yield (
                f"{table.name}: {name} is personal from now on; the bounds of its values in the metadata of files "
                "already written stay until those files are rewritten and their snapshots have expired."
            )
