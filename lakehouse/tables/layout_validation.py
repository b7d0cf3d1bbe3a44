"""Check at import time what Iceberg would reject at the first write."""

from collections.abc import Iterator, Sequence

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.partitioning import PartitionField
from lakehouse.tables.table_properties import table_properties

INTERNAL_PREFIX = "__"
"""Starts the name of each column that the lakehouse adds to a DataFrame and does not store."""
ICEBERG_NAMES = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
    }
)
"""Iceberg's metadata columns."""
INGEST_NAMES = frozenset(
    {"_source_file", "_source_sha256", "_source_modified_at", "_source_row", "_ingested_at"}
)
"""The columns that an ingest adds to bronze; other tables can keep them."""
QUARANTINE_NAMES = frozenset({"_row_key", "_reasons", "_quarantined_at"})
"""The columns that only a quarantine has."""


def reserved_for(name: str) -> str:
    """Return what a column name is reserved for, in any case; "" if a table can declare it."""
    lowered = name.lower()
    if lowered in ICEBERG_NAMES:
        return "Iceberg's metadata columns"
    if lowered in QUARANTINE_NAMES:
        return "quarantine tables"
    if lowered in INGEST_NAMES and name != lowered:
        return f"the ingest, which writes it as {lowered}"
    return "internal columns" if name.startswith(INTERNAL_PREFIX) else ""


def suggest_name(name: str) -> str:
    """Return a name to suggest in place of a reserved one."""
    return name.strip("_").lower() or "column_1"


_RESERVED_PROPERTIES = {
    "comment": "comment=…",
    "location": "location=…",
    "owner": "owner=…, which is kept as lakehouse.owner",
    "provider": "file_format=…",
}
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})
_TRANSFORMABLE = {
    "years": _TIMESTAMPS | {"date"},
    "months": _TIMESTAMPS | {"date"},
    "days": _TIMESTAMPS | {"date"},
    "hours": _TIMESTAMPS,
    "bucket": _TIMESTAMPS | {"int", "bigint", "decimal", "date", "string", "binary"},
    "truncate": frozenset({"int", "bigint", "decimal", "string", "binary"}),
}
Z_ORDERABLE = frozenset(
    _TIMESTAMPS | {"boolean", "int", "bigint", "float", "double", "date", "string", "binary"}
)
"""Types whose bytes Iceberg interleaves; it has no z-order for decimals."""


def check_layout(table: TableDeclaration, of_quarantine: Sequence[Column]) -> None:
    """Check names, partitioning, sort order and properties. `of_quarantine` are columns that a
    quarantine declares under reserved names.
    """
    _check_names(table, of_quarantine)
    _check_transforms(table)
    _check_partition_names(table)
    _check_properties(table)
    _check_dropped(table)
    _check_profiled(table)
    _check_sorted_by(table)


def can_be_read(name: str) -> bool:
    """Return whether Spark can resolve a name: it splits at dots and replaces `${`."""
    return bool(name.strip()) and "." not in name and "${" not in name


def _check_names(table: TableDeclaration, of_quarantine: Sequence[Column]) -> None:
    for column in table.columns:
        name, owner = column.name, reserved_for(column.name)
        if owner and column not in of_quarantine:
            raise DeclarationError(
                f"{table.name} declares the column {name}: the name is reserved for {owner}.",
                next_step=(
                    f"Call it {suggest_name(name)!r}; if the table already has the column, add"
                    f" renamed_from={name!r}."
                ),
            )
        if not can_be_read(name):
            raise DeclarationError(
                f"{table.name} declares the column {name!r}; expected a name without dots,"
                " which separate nested fields, and without ${, which Spark replaces.",
                next_step="Give the column another name.",
            )


def _check_transforms(table: TableDeclaration) -> None:
    fields = [("partitioning", field) for field in table.partition_fields]
    fields += [("sort_order", field.field) for field in table.sort_fields]
    for part, field in fields:
        declared = types.parse(table.column(field.column).type)
        if isinstance(declared, types.Struct | types.Array | types.Map):
            raise DeclarationError(
                f"{table.name}: {part} has {field}, and {field.column} is {declared}; expected"
                " a column without parts."
            )
        kind = "decimal" if isinstance(declared, types.Decimal) else str(declared)
        fitting = _TRANSFORMABLE.get(field.transform)
        if fitting is not None and kind not in fitting:
            raise DeclarationError(
                f"{table.name}: {part} has {field}, and {field.column} is {declared}; "
                f"{field.transform} takes {', '.join(sorted(fitting))}."
            )


def _check_partition_names(table: TableDeclaration) -> None:
    columns = [field.column for field in table.partition_fields]
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DeclarationError(
            f"{table.name}: partitioning names {', '.join(twice)} more than once"
            f" ({', '.join(table.partitioning)}); Spark makes a table with one transform of a"
            " column at most."
        )
    column_names = {name.lower() for name in table.column_names}
    for field in table.partition_fields:
        for name in _names_in_iceberg(field):
            if name.lower() in column_names:
                raise DeclarationError(
                    f"{table.name}: the partition field {field} is called {name} in Iceberg, as"
                    " is a column.",
                    next_step=f"Give the column {name} another name.",
                )


def _names_in_iceberg(field: PartitionField) -> Iterator[str]:
    """Yield the names that Iceberg may give a transform; CREATE and ALTER TABLE differ."""
    if field.width is not None:
        short = "trunc" if field.transform == "truncate" else field.transform
        yield from (f"{field.column}_{short}", f"{field.column}_{short}_{field.width}")
    elif field.transform != "identity":
        yield f"{field.column}_{field.transform.removesuffix('s')}"


def _check_properties(table: TableDeclaration) -> None:
    for name, value in table.properties.items():
        if name in _RESERVED_PROPERTIES:
            raise DeclarationError(
                f"{table.name}: properties has {name}, which Spark keeps for itself.",
                next_step=f"Use {_RESERVED_PROPERTIES[name]}.",
            )
        if not isinstance(value, str):
            raise DeclarationError(
                f"{table.name}: the property {name} is {value!r}; expected text."
            )
    if table.properties.get("write.spark.accept-any-schema", "false").lower() == "true":
        raise DeclarationError(
            f"{table.name}: properties sets write.spark.accept-any-schema, with which inserts"
            " by position fail.",
            next_step="Leave it out: columns are added by declaring them.",
        )
    version = table_properties(table)["format-version"]
    if version not in ("1", "2", "3"):
        raise DeclarationError(
            f"{table.name}: the format version is {version}; expected 2, or 3."
        )


def _check_dropped(table: TableDeclaration) -> None:
    still = sorted(
        {name.lower() for name in table.dropped} & {name.lower() for name in table.column_names}
    )
    if still:
        raise DeclarationError(f"{table.name} both declares and drops {', '.join(still)}.")


def _check_profiled(table: TableDeclaration) -> None:
    for name in table.profiled_columns:
        declared = types.parse(table.column(name).type)
        if types.has_map(declared):
            raise DeclarationError(
                f"{table.name}: {name} is profiled, and is {declared}; expected a type without"
                " a map, of which Spark compares none."
            )


def _check_sorted_by(table: TableDeclaration) -> None:
    policy = table.upkeep_policy
    part = "Upkeep(sort_by=…, z_order=True)" if policy.z_order else "Upkeep(sort_by=…)"
    for name in policy.sort_by:
        declared = types.parse(table.column(name).type)
        if isinstance(declared, types.Struct | types.Array | types.Map):
            raise DeclarationError(
                f"{table.name}: {part} has {name}, which is {declared}; expected a column"
                " without parts."
            )
        if policy.z_order and str(declared) not in Z_ORDERABLE:
            raise DeclarationError(
                f"{table.name}: {part} has {name}, which is {declared}; Iceberg's z-order takes"
                f" {', '.join(sorted(Z_ORDERABLE))}.",
                next_step="Leave the column out, or leave out z_order and sort by it in turn.",
            )
    by_value = {
        field.column for field in table.partition_fields if field.transform == "identity"
    }
    if policy.z_order and policy.sort_by and by_value.issuperset(policy.sort_by):
        raise DeclarationError(
            f"{table.name}: {part} has only {', '.join(policy.sort_by)}, by whose values the"
            " table is partitioned, so that each file has one value of it; expected another"
            " column."
        )
