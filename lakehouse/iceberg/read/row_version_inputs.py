"""Reads of a versioned input: new and existing rows, in and outside of the partitions."""

from collections.abc import Mapping
from dataclasses import replace

from lakehouse.iceberg.read.inputs import Input, existing_rows
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable, Overwrite

EXISTING = "existing rows"
"""The input of own rows in the run's partitions; not a valid parameter name."""
EXISTING_OUTSIDE = "existing rows elsewhere"
"""Name of the input with the table's own rows in other partitions."""


def versioned_inputs(inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Return the inputs declared by `versions_of`."""
    return {name: declared for name, declared in inputs.items() if declared.mode == "versions"}


def with_version_reads(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Return the inputs with all reads that each `versions_of` implies."""
    reads: dict[str, Input] = {}
    for name, declared in inputs.items():
        if declared.mode == "versions":
            reads |= _version_reads(table, name, declared)
        else:
            reads[name] = declared
    return reads


def outside_name(name: str) -> str:
    """Return the name of the input with new rows outside of the run's partitions."""
    return f"{name} elsewhere"


def has_no_partition(partitions: Partitions | None, by: str) -> str:
    """Return the SQL predicate of new rows in no partition, which every run reads."""
    if partitions is None or partitions.every is None:
        return f"{identifier(by)} IS NULL"
    return partitions.every.outside(by)


def _version_reads(table: IcebergTable, name: str, declared: Input) -> dict[str, Input]:
    if isinstance(table.write, Overwrite):
        return {name: replace(declared, mode="latest")}
    arrived = replace(declared, mode="incremental")
    by = table.overwritten_by
    if by is None:
        return {name: arrived}
    return {
        name: arrived,
        outside_name(name): replace(arrived, outside=True),
        EXISTING: existing_rows(table.name, by=by),
        EXISTING_OUTSIDE: existing_rows(table.name, by=by, outside=True),
    }
