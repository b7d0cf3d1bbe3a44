"""What is read for an input of versions: what arrived in the run's partitions and elsewhere, and
the rows that the table has already.

Who declares a table names one input. A version that moved to another partition, or came late,
is found all the same, since the engine reads the other partitions for it.
"""

from collections.abc import Mapping
from dataclasses import replace

from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.iceberg.read.inputs import Input, existing_rows
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable, Overwrite

EXISTING = "existing rows"
"""Name of the input that reads the table's own rows of the run's partitions; no parameter of a
function can have it.
"""
EXISTING_ELSEWHERE = "existing rows elsewhere"
"""Name of the input that reads the table's own rows of other partitions."""


def versioned_inputs(inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Return those inputs that are declared by `versions_of`."""
    return {name: declared for name, declared in inputs.items() if declared.mode == "versions"}


def with_version_reads(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Return the inputs as they are read, with all that each of `versions_of` stands for."""
    reads: dict[str, Input] = {}
    for name, declared in inputs.items():
        if declared.mode == "versions":
            reads |= _version_reads(table, name, declared)
        else:
            reads[name] = declared
    return reads


def elsewhere(name: str) -> str:
    """Return the name of the input that reads what arrived outside of the run's partitions."""
    return f"{name} elsewhere"


def has_no_partition(partitions: Partitions | None, by: str) -> str:
    """Return the SQL predicate of arrived rows that belong to no partition there is, so that any
    run reads them.
    """
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
        elsewhere(name): replace(arrived, outside=True),
        EXISTING: existing_rows(table.name, by=by),
        EXISTING_ELSEWHERE: existing_rows(table.name, by=by, outside=True),
    }
