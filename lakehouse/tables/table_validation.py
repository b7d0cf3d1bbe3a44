"""Checks of a declaration at import time, of what would fail late or lose data."""

import re
from collections.abc import Collection, Sequence

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.quarantine_columns import QUARANTINE_NAMES
from lakehouse.tables.type_promotion import is_wider
from lakehouse.tables.write_modes import Versions


def check_subject(table: TableDeclaration, own_of_quarantine: Collection[str]) -> None:
    """Check the reason for no subject, and the columns that a quarantine fills."""
    reason = table.no_subject
    if reason is not None and (table.subject is not None or not reason.strip()):
        raise DeclarationError(
            f"{table.name} has the subject {table.subject} and no_subject={reason!r}; expected"
            " a subject, or the reason why no column identifies a person."
        )
    if table.subject is not None and table.on_erasure == "keep":
        raise DeclarationError(
            f"{table.name} has the subject {table.subject} and on_erasure='keep'; expected it"
            " without: rows of an erased person always go."
        )
    if table.quarantining_rules:
        _check_quarantine(table, own_of_quarantine)


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
    if share is not None and not 0 <= share <= 1:
        raise DeclarationError(
            f"{table.name}: max_refused_share is {share!r}; expected a share from 0 to 1."
        )
    if share is not None and not table.quarantining_rules:
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


_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})
_TRANSFORMABLE = {
    "years": _TIMESTAMPS | {"date"},
    "months": _TIMESTAMPS | {"date"},
    "days": _TIMESTAMPS | {"date"},
    "hours": _TIMESTAMPS,
    "bucket": _TIMESTAMPS | {"int", "bigint", "decimal", "date", "string", "binary"},
    "truncate": frozenset({"int", "bigint", "decimal", "string", "binary"}),
}


def check_layout(table: TableDeclaration, of_quarantine: Sequence[Column]) -> None:
    """Check names and transforms. `of_quarantine` are columns that a quarantine declares under
    reserved names.
    """
    _check_names(table, of_quarantine)
    _check_transforms(table)
    _check_dropped(table)


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


def _check_dropped(table: TableDeclaration) -> None:
    still = sorted(
        {name.lower() for name in table.dropped} & {name.lower() for name in table.column_names}
    )
    if still:
        raise DeclarationError(f"{table.name} both declares and drops {', '.join(still)}.")
