"""Checks of a declaration at import time, also of what Iceberg would reject at the first write."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import get_args

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import OnErasure, TableDeclaration
from lakehouse.tables.partitioning import PartitionField
from lakehouse.tables.quarantine_columns import QUARANTINE_NAMES
from lakehouse.tables.table_properties import table_properties
from lakehouse.tables.type_promotion import is_wider
from lakehouse.tables.write_modes import Versions


def check_subject(table: TableDeclaration, own_of_quarantine: Collection[str]) -> None:
    """Check the subject and erasure options, and the columns that a quarantine fills."""
    if table.on_erasure not in get_args(OnErasure):
        raise DeclarationError(
            f"{table.name}: on_erasure is {table.on_erasure!r}; expected one of"
            f" {', '.join(get_args(OnErasure))}."
        )
    if table.subject is not None and table.on_erasure != "recompute":
        raise DeclarationError(
            f"{table.name} has the subject {table.subject} and on_erasure="
            f"{table.on_erasure!r}; expected it without: rows of an erased person always go.",
            next_step="Leave on_erasure out.",
        )
    _check_reason(table)
    if table.quarantining_rules:
        _check_quarantine(table, own_of_quarantine)


def _check_reason(table: TableDeclaration) -> None:
    if table.no_subject is None:
        return
    if table.subject is not None:
        raise DeclarationError(
            f"{table.name} has the subject {table.subject} and no_subject=…; expected one of"
            " them.",
            next_step="Leave no_subject out.",
        )
    if not table.no_subject.strip():
        raise DeclarationError(
            f"{table.name}: no_subject is empty; expected the reason why no column identifies a"
            " person."
        )


def _check_quarantine(table: TableDeclaration, own_of_quarantine: Collection[str]) -> None:
    hidden = sorted(table.masked_columns & set(own_of_quarantine))
    if hidden:
        raise DeclarationError(
            f"{table.name}: {', '.join(hidden)} is about people, and a quarantine fills a column"
            " of this name itself, so no one would be found there; expected another name.",
            next_step="Rename the column.",
        )


_ANYTHING = types.Primitive("string")
_NAME = re.compile(r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")


def check_casts(table: TableDeclaration) -> None:
    """Check that the type of a `castable` rule fits its column; otherwise a value that the rule
    accepts could not be stored, and every run would fail.
    """
    for rule in table.rules:
        if rule.cast is None:
            continue
        name = rule.columns[0]
        read, kept = types.parse(rule.cast.type), types.parse(table.column(name).type)
        if kept != _ANYTHING and read != kept and not is_wider(kept, read):
            raise DeclarationError(
                f"{table.name}: rule {rule.name} reads {name} as {read}, and the column is"
                f" {kept}; expected {kept}, or a type of which each value is one.",
                next_step=(
                    f"Use castable({name!r}, {str(kept)!r}), or declare the column as {read}."
                ),
            )


def check_columns(table: TableDeclaration) -> None:
    """Check the name, the columns, and each part of the declaration that names columns."""
    if not _NAME.match(table.name):
        raise DeclarationError(
            f"{table.name!r} is not a table name; expected layer.table in lower case letters,"
            " digits and underscores."
        )
    names = [column.name for column in table.columns]
    if not names:
        raise DeclarationError(f"{table.name} declares no columns; expected at least one.")
    lowered = [name.lower() for name in names]
    twice = sorted({name for name in names if lowered.count(name.lower()) > 1})
    if twice:
        raise DeclarationError(
            f"{table.name} declares {', '.join(twice)} more than once; names ignore case."
        )
    check_known(table, "partitioning", [part.column for part in table.partition_fields])
    check_known(table, "sort_order", [part.field.column for part in table.sort_fields])
    check_known(table, "bloom_filters", table.bloom_filters)
    check_known(table, "subject", [table.subject] if table.subject else [])
    check_known(table, "once_by", table.once_by)
    for rule in table.rules:
        check_known(table, f"rule {rule.name}", rule.columns)
    if table.versions:
        check_known(table, "versions", (*table.versions.of, *table.versions.newest))
        _check_merged_versions(table, table.versions)
    _check_partitions(table)


def check_known(table: TableDeclaration, part: str, columns: Sequence[str]) -> None:
    unknown = [column for column in columns if column not in table.column_names]
    if unknown:
        raise DeclarationError(
            f"{table.name}: {part} names {', '.join(unknown)}; expected columns among"
            f" {', '.join(table.column_names)}."
        )


def _check_merged_versions(table: TableDeclaration, versions: Versions) -> None:
    on, of = getattr(table.write, "on", versions.of), versions.of
    if {*on} != {*of}:
        raise DeclarationError(
            f"{table.name} merges on {', '.join(on)}, and its versions are of {', '.join(of)};"
            " expected the same columns, since it stores the newest version of each key.",
            next_step="Name the same columns in Merge(on=…) and in Versions(of=…).",
        )
    if table.stamp in versions.newest:
        raise DeclarationError(
            f"{table.name}: versions are ordered by {table.stamp}, which the merge fills with"
            " the time of its write; expected columns that are delivered."
        )


def _check_partitions(table: TableDeclaration) -> None:
    partitioned = [part.column for part in table.partition_fields]
    by = table.overwritten_by
    if by is not None:
        check_known(table, "OverwritePartitions(by=…)", [by])
        if by not in partitioned:
            raise DeclarationError(
                f"{table.name} overwrites partitions by {by}, which is not in its partitioning "
                f"({', '.join(table.partitioning) or 'none'}).",
                next_step=f"Add {by}, or a transform of it, to partitioning.",
            )
    _check_subject_is_no_partition(table)
    for column in partitioned:
        if column in table.personal_columns:
            raise DeclarationError(
                f"{table.name} is partitioned by {column}, which is personal: its values would"
                " be in paths and metadata, where erasure cannot remove them.",
                next_step="Partition by another column.",
            )


def _check_subject_is_no_partition(table: TableDeclaration) -> None:
    """Check that the subject is not a partition value; a bucket does not reveal it."""
    plain = {part.column for part in table.partition_fields if part.transform != "bucket"}
    if table.subject is None or table.subject not in {*plain, table.overwritten_by}:
        return
    raise DeclarationError(
        f"{table.name} is partitioned by {table.subject}, which identifies a person: its values"
        " would be in paths, partition keys and tags of runs.",
        next_step=f"Partition by another column, or by bucket(16, {table.subject}).",
    )


REFUSED_SHARE = "refused_share"
"""The name of the check for the share of rejected rows."""


def check_rules(table: TableDeclaration) -> None:
    """Check the names of rules and their requirements."""
    names = [rule.name for rule in table.rules]
    if len(set(names)) < len(names):
        raise DeclarationError(
            f"{table.name} has rules of the same name: {', '.join(sorted(names))}.",
            next_step="Give one of them a name=… of its own.",
        )
    _check_refused_share(table)
    for rule in table.rules:
        rule.check(table)


def _check_refused_share(table: TableDeclaration) -> None:
    share = table.max_refused_share
    if any(rule.name == REFUSED_SHARE for rule in table.rules):
        raise DeclarationError(
            f"{table.name} has a rule named {REFUSED_SHARE}, as is the check of how many rows"
            " are rejected.",
            next_step="Give the rule another name=….",
        )
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise DeclarationError(
            f"{table.name}: max_refused_share is {share!r}; expected a share from 0 to 1."
        )
    if not table.quarantining_rules:
        raise DeclarationError(
            f"{table.name} has max_refused_share, and none of its rules quarantines rows.",
            next_step="Use on_failure='quarantine' in a rule on rows, or leave the share out.",
        )


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
