"""Checks of columns, references, casts and data subjects of a declaration."""

import re
from collections.abc import Collection, Sequence

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.declaration import TableDeclaration
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
