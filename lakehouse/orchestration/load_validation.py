"""Checks of asset partitions, inputs and data subjects when definitions load."""

from collections.abc import Iterable, Mapping

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.orchestration.partitions.partition_bounds import all_partitions_of
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.person import Origin, Origins, origins_of
from lakehouse.tables.table import IcebergTable


def sources_of(
    computed: Iterable[dg.AssetSpec], tables: Mapping[str, IcebergTable]
) -> dict[str, set[str]]:
    """Return the upstream tables of each table; the source of a quarantine is its table.

    :param computed: asset specs with input metadata.
    """
    sources: dict[str, set[str]] = {}
    for spec in computed:
        read = inputs_of(spec.metadata).values()
        sources.setdefault(table_name(spec.key), set()).update(one.table for one in read)
    for table in tables.values():
        if table.quarantine:
            sources.setdefault(table.quarantine.name, set()).add(table.name)
    return sources


def check_subjects(
    tables: Mapping[str, IcebergTable],
    sources: Mapping[str, set[str]],
    feeds: Iterable[Feed],
) -> None:
    """Check that each table with personal columns has a subject, or a reason for not having one.

    :raises DeclarationError: names the table, the columns and what to declare.
    """
    read = {name: set(names) for name, names in sources.items()}
    known = dict(tables)
    for feed in feeds:
        # Columns of the files, independent of the target table.
        known[f"feed {feed.name}"] = bronze_table(feed, "What is delivered.")
        read.setdefault(feed.table, set()).add(f"feed {feed.name}")
    about_people = origins_of(known, read)
    for name, table in tables.items():
        if about_people[name]:
            _check_subject(table, about_people[name])
            _check_partitions(table, about_people[name])


def _check_subject(table: IcebergTable, columns: Origins) -> None:
    if table.subject is not None or table.no_subject is not None:
        return
    found = [f"{column} ({_describe(columns[column])})" for column in columns]
    raise DeclarationError(
        f"{table.name} has {', '.join(found)}, and declares no subject; expected one, by which"
        " the rows of a person are found who is to be erased.",
        next_step=(
            "Declare subject=…, the column that stands for the person, or no_subject='why' where"
            " none does; of a feed's table, in its Feed."
        ),
    )


def _check_partitions(table: IcebergTable, columns: Origins) -> None:
    for field in table.partition_fields:
        if field.column in columns and field.transform != "bucket":
            raise DeclarationError(
                f"{table.name} is partitioned by {field.column}"
                f" ({_describe(columns[field.column])}): its values would stand in paths and"
                " metadata, where erasure cannot reach them.",
                next_step=f"Partition by another column, or by bucket(16, {field.column}).",
            )


def _describe(origins: frozenset[Origin]) -> str:
    return " and ".join(str(origin) for origin in sorted(origins))


_ALIKE = (frozenset({"date", "timestamp"}), frozenset({"int", "bigint"}))
"""Types with the same partition values."""
_IDENTIFYING = ("identity", "days")
"""Transforms whose values identify the partitions that a commit changed."""


def check_partitions(
    table: IcebergTable, inputs: Mapping[str, Input], definition: dg.PartitionsDefinition | None
) -> None:
    """Check that a partitioned asset overwrites partitions and has an input that selects them.

    :raises DeclarationError: names the table, the actual and the expected value.
    """
    _check_both(table, definition)
    if definition is None:
        return
    if isinstance(definition, dg.DynamicPartitionsDefinition):
        raise DeclarationError(
            f"{table.name} has dynamic partitions, which only Dagster's instance knows;"
            " expected windows of time, or static ones.",
            next_step="Name the partitions in a dagster.StaticPartitionsDefinition.",
        )
    all_partitions_of(table, definition)
    _check_partition_inputs(table, inputs)


def check_columns(
    target: IcebergTable | None, owner: str, name: str, declared: Input, source: IcebergTable
) -> None:
    """Check that the columns of an input exist and can identify partitions.

    :param target: the computed table; None if it is not declared.
    :param owner: name of the computed asset.
    :raises DeclarationError: names the table, the input, the actual and the expected value.
    """
    for part, column in [
        *(("of", key) for key in declared.keys),
        *([("by", declared.by)] if declared.by else []),
    ]:
        if column not in source.column_names:
            raise DeclarationError(
                f"{owner}: input {name} has {part}={column!r}, and {source.name} has no such"
                f" column; expected one of {', '.join(source.column_names)}.",
                next_step="Correct the name.",
            )
    if declared.by:
        _check_identifies_partitions(owner, name, declared.by, source)
        _check_is_alike(target, name, declared, source)


def _check_both(table: IcebergTable, definition: dg.PartitionsDefinition | None) -> None:
    by = table.overwritten_by
    if by and definition is None:
        raise DeclarationError(
            f"{table.name} is written by OverwritePartitions(by={by!r}), and its asset has no"
            " partitions_def; expected one.",
            next_step=f"Say write=by_day({by!r}, since=…), by_hour or by_month, or give"
            " @iceberg_asset partitions_def=….",
        )
    if definition is not None and by is None:
        raise DeclarationError(
            f"{table.name} has a partitions_def, and is written by"
            f" {type(table.write).__name__}; expected OverwritePartitions(by=…).",
            next_step="Name the partition column there, or leave out partitions_def.",
        )


def _check_partition_inputs(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    _check_one_column(table, inputs)
    sources = []
    for name, declared in inputs.items():
        if declared.table != table.name or declared.mode != "existing_rows":
            sources.append(declared)
        elif declared.by != table.overwritten_by:
            raise DeclarationError(
                f"{table.name}: input {name} reads existing_rows with by={declared.by!r}; expected"
                f" {table.overwritten_by!r}, the column that the table is overwritten by.",
                next_step="Correct the name.",
            )
    selects = [
        declared
        for declared in sources
        if declared.by and not declared.outside and declared.mode != "changed_keys"
    ]
    if sources and not selects:
        raise DeclarationError(
            f"{table.name} is computed by partitions, and none of its inputs"
            f" ({', '.join(inputs)}) has by=…, which selects the partitions to compute.",
            next_step="Name the partition column of an input, as in latest(…, by=…), or write the"
            " table by Overwrite().",
        )


def _check_one_column(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Check that all inputs of a source use one column: watermarks are stored per source."""
    columns: dict[str, str] = {}
    for name, declared in inputs.items():
        if declared.by is None:
            continue
        first = columns.setdefault(declared.table, declared.by)
        if declared.by != first:
            raise DeclarationError(
                f"{table.name}: input {name} has by={declared.by!r}, and another input reads"
                f" {declared.table} by {first!r}; expected one column.",
                next_step=f"Compute another table from {declared.table} by {declared.by}, and read"
                " that here.",
            )


def _check_identifies_partitions(owner: str, name: str, by: str, source: IcebergTable) -> None:
    transforms = {field.transform for field in source.partition_fields if field.column == by}
    if transforms.isdisjoint(_IDENTIFYING):
        raise DeclarationError(
            f"{owner}: input {name} has by={by!r}, and {source.name} is partitioned by"
            f" {', '.join(source.partitioning) or 'nothing'}; expected {by} or days({by}) among"
            " it, which identifies what each commit changed.",
            next_step=f"Add it to the partitioning of {source.name}.",
        )


def _check_is_alike(
    target: IcebergTable | None, name: str, declared: Input, source: IcebergTable
) -> None:
    own = target.overwritten_by if target else None
    if target is None or own is None or declared.by is None:
        return
    source_type, target_type = source.column(declared.by).type, target.column(own).type
    if source_type != target_type and not any(
        {source_type, target_type} <= alike for alike in _ALIKE
    ):
        raise DeclarationError(
            f"{target.name}: input {name} has by={declared.by!r}, which is {source_type} in"
            f" {source.name}, and the table is overwritten by {own}, which is {target_type};"
            " expected columns of one type.",
            next_step=f"Add a column of type {target_type} to {source.name}.",
        )
