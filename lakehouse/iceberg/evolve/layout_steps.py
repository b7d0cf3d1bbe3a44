"""Evolution steps for partitioning, sort order, location, format and properties."""

from collections.abc import Sequence

from lakehouse.iceberg.evolve.managed_properties import DISTRIBUTION_PROPERTY
from lakehouse.iceberg.evolve.schema_steps import Order, Step, assignments
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.quoting import literal
from lakehouse.tables.row_level import ChosenRowLevel


def add_partition_field(field: PartitionField) -> Step:
    """Return the step that adds a partition field for new files."""
    return _change_partitioning(
        f"partition also by {field}", f"ADD PARTITION FIELD {field.sql}"
    )


def drop_partition_field(field: PartitionField) -> Step:
    """Return the step that removes a partition field for new files."""
    return _change_partitioning(
        f"stop partitioning by {field}", f"DROP PARTITION FIELD {field.sql}"
    )


def replace_partition_field(old: PartitionField, new: PartitionField) -> Step:
    """Return the step that replaces a partition field for new files."""
    return _change_partitioning(
        f"partition by {new} in place of {old}",
        f"REPLACE PARTITION FIELD {old.sql} WITH {new.sql}",
    )


def _change_partitioning(description: str, clause: str) -> Step:
    return Step(Order.PARTITIONING, description, (clause,), automatic=False)


def sort_files(fields: Sequence[SortField]) -> Step:
    """Return the step that changes the sort order of new files."""
    # LOCALLY keeps the distribution mode; its default for a sorted table is `range`.
    return Step(
        Order.SORT_ORDER,
        f"sort new files by {', '.join(map(str, fields))}",
        (f"WRITE LOCALLY ORDERED BY {', '.join(field.sql for field in fields)}",),
        automatic=False,
    )


def stop_sorting_files(distribution_mode: str | None) -> Step:
    """Return the step that removes the sort order of new files.

    :param distribution_mode: the table property of that name; None if it is not set.
    """
    # UNORDERED sets the distribution mode to `none`, so it is restored.
    kept_mode = (
        _set({DISTRIBUTION_PROPERTY: distribution_mode})
        if distribution_mode
        else _unset([DISTRIBUTION_PROPERTY])
    )
    return Step(
        Order.SORT_ORDER,
        "stop sorting new files",
        ("WRITE UNORDERED", kept_mode),
        automatic=False,
    )


def move_location(current: str, declared: str) -> Step:
    """Return the step that changes the location of new files; existing files stay."""
    return Step(
        Order.LOCATION,
        f"write new files below {declared} rather than {current}",
        (f"SET LOCATION {literal(declared)}",),
        automatic=False,
    )


def upgrade_format(current: int, declared: int) -> Step:
    """Return the step that upgrades the format version, which some readers may not support."""
    return Step(
        Order.FORMAT,
        f"upgrade the format from version {current} to {declared}",
        (_set({"format-version": str(declared)}),),
        automatic=False,
    )


def change_row_level(chosen: ChosenRowLevel, values: dict[str, str]) -> Step:
    """Return the step that changes the row-level mode."""
    return Step(Order.PROPERTIES, f"change rows by {chosen}: {_shown(values)}", (_set(values),))


def change_properties(values: dict[str, str], unset: Sequence[str]) -> Step:
    """Return the step that sets declared properties, and removes undeclared ones."""
    descriptions = []
    clauses = []
    if values:
        descriptions.append(_shown(values))
        clauses.append(_set(values))
    if unset:
        descriptions.append(f"unset {', '.join(unset)}")
        # `values` contains the list of managed names: remove properties before they leave the
        # list.
        clauses.insert(0, _unset(unset))
    return Step(Order.PROPERTIES, "; ".join(descriptions), tuple(clauses))


def _shown(values: dict[str, str]) -> str:
    return f"set {', '.join(f'{name}={value}' for name, value in values.items())}"


def _set(properties: dict[str, str]) -> str:
    return f"SET TBLPROPERTIES ({assignments(properties)})"


def _unset(names: Sequence[str]) -> str:
    return f"UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(literal, names))})"
