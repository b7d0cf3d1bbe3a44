"""The SQL of each step; one function builds one statement."""

import json
from collections.abc import Iterable

from lakehouse.iceberg.evolve.layout_steps import (
    ChangePartitioning,
    ChangeProperties,
    ChangeSortOrder,
    MoveLocation,
    UpgradeFormat,
)
from lakehouse.iceberg.evolve.steps import (
    AddColumn,
    Comment,
    CommitSchema,
    CreateTable,
    DropColumn,
    MakeOptional,
    MoveColumn,
    RenameColumn,
    Step,
    WidenColumn,
)
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.tables.partitioning import PartitionField
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import Column, IcebergTable

MANAGED_PROPERTY = "lakehouse.managed-properties"
"""Table property: the names of those that follow the declaration, so that others' are left
alone.
"""
DISTRIBUTION_PROPERTY = "write.distribution-mode"


def statements(step: Step, catalog: Catalog, table: str) -> list[str]:
    """Return the SQL of a step, in the order that it runs in; none for a step that is a commit
    rather than DDL.
    """
    name = catalog.sql_name(table)
    match step:
        case CreateTable(table=declared):
            return [create_namespace(catalog, declared.namespace), create_table(declared, name)]
        case Comment(column=None, text=text):
            return [f"COMMENT ON TABLE {name} IS {literal(text)}"]
        case CommitSchema():
            return []
        case (
            ChangePartitioning()
            | ChangeSortOrder()
            | MoveLocation()
            | UpgradeFormat()
            | ChangeProperties()
        ):
            return [f"ALTER TABLE {name} {clause}" for clause in _layout_clauses(step)]
        case _:
            return [f"ALTER TABLE {name} {_column_clause(step)}"]


def create_namespace(catalog: Catalog, namespace: str) -> str:
    """Return the statement that makes sure of a namespace."""
    return f"CREATE NAMESPACE IF NOT EXISTS {identifier(catalog.name, namespace)}"


def create_table(table: IcebergTable, name: str) -> str:
    """Return the statement that makes sure of a table; its sort order is a step of its own."""
    columns = ",\n  ".join(_definition(column) for column in table.columns)
    parts = [f"CREATE TABLE IF NOT EXISTS {name} (\n  {columns}\n)", "USING iceberg"]
    if table.partition_fields:
        parts.append(
            f"PARTITIONED BY ({', '.join(field.sql for field in table.partition_fields)})"
        )
    if table.location:
        parts.append(f"LOCATION {literal(table.location)}")
    if table.comment:
        parts.append(f"COMMENT {literal(table.comment)}")
    properties = {**table.table_properties, MANAGED_PROPERTY: managed_properties(table)}
    parts.append(f"TBLPROPERTIES ({_assignments(properties.items())})")
    return "\n".join(parts)


def declared_properties(table: IcebergTable) -> dict[str, str]:
    """Return the properties of a declaration that Iceberg keeps as such; the format version is
    none of them.
    """
    return {
        name: value
        for name, value in table.table_properties.items()
        if name != "format-version"
    }


def managed_properties(table: IcebergTable) -> str:
    """Return the value of `MANAGED_PROPERTY`."""
    return json.dumps(sorted(declared_properties(table)))


def _definition(column: Column) -> str:
    required = " NOT NULL" if column.required else ""
    return f"{identifier(column.name)} {column.type}{required}{_comment(column.doc)}"


def _column_clause(step: Step) -> str:
    match step:
        case RenameColumn(old=old, new=new):
            return f"RENAME COLUMN {identifier(old)} TO {identifier(new)}"
        case WidenColumn(path=path, declared=declared):
            return f"ALTER COLUMN {identifier(*path)} TYPE {declared}"
        case MakeOptional(column=column):
            return f"ALTER COLUMN {identifier(column)} DROP NOT NULL"
        case AddColumn(path=path, type=type_, doc=doc, after=after):
            return f"ADD COLUMN {identifier(*path)} {type_}{_comment(doc)} {_place(after)}"
        case Comment(column=str(column), text=text):
            return f"ALTER COLUMN {identifier(column)} COMMENT {literal(text)}"
        case DropColumn(path=path):
            return f"DROP COLUMN {identifier(*path)}"
        case MoveColumn(path=path, after=after):
            return f"ALTER COLUMN {identifier(*path)} {_place(after)}"
    raise TypeError(f"no SQL for {type(step).__name__}")


def _layout_clauses(step: Step) -> list[str]:
    match step:
        case ChangePartitioning(old=PartitionField() as old, new=None):
            return [f"DROP PARTITION FIELD {old.sql}"]
        case ChangePartitioning(old=None, new=PartitionField() as new):
            return [f"ADD PARTITION FIELD {new.sql}"]
        case ChangePartitioning(old=PartitionField() as old, new=PartitionField() as new):
            return [f"REPLACE PARTITION FIELD {old.sql} WITH {new.sql}"]
        case ChangeSortOrder():
            return _sort_clauses(step)
        case MoveLocation(declared=declared):
            return [f"SET LOCATION {literal(declared)}"]
        case UpgradeFormat(declared=declared):
            return [_set([("format-version", str(declared))])]
        case ChangeProperties(values=values, unset=unset):
            # The list of managed names is among the values: a property that goes must be gone
            # before it is forgotten.
            return [
                clause
                for names, clause in ((unset, _unset(unset)), (values, _set(values)))
                if names
            ]
    raise TypeError(f"no SQL for {type(step).__name__}")


def _sort_clauses(step: ChangeSortOrder) -> list[str]:
    if step.fields:
        # LOCALLY leaves the distribution mode alone, which for a sorted table is `range` unless
        # a property says so.
        return [f"WRITE LOCALLY ORDERED BY {', '.join(field.sql for field in step.fields)}"]
    # UNORDERED sets the distribution mode to `none`, which nobody asked for.
    mode = step.distribution_mode
    return [
        "WRITE UNORDERED",
        _set([(DISTRIBUTION_PROPERTY, mode)]) if mode else _unset([DISTRIBUTION_PROPERTY]),
    ]


def _set(values: Iterable[tuple[str, str]]) -> str:
    return f"SET TBLPROPERTIES ({_assignments(values)})"


def _unset(names: Iterable[str]) -> str:
    return f"UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(literal, names))})"


def _assignments(values: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in values)


def _comment(text: str) -> str:
    return f" COMMENT {literal(text)}" if text else ""


def _place(after: str | None) -> str:
    return f"AFTER {identifier(after)}" if after else "FIRST"
