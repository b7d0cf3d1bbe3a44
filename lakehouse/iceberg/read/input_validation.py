"""Checks of a table against its inputs at load time, before rows can be duplicated or lost."""

from collections.abc import Mapping

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.row_version_inputs import versioned_inputs
from lakehouse.tables.table import Append, IcebergTable, Merge, Overwrite


def check_appended_once(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Reject an append of rows that inputs can provide again, without an idempotent key.

    :raises DeclarationError: names the table, its inputs and the expected value.
    """
    if not inputs or not isinstance(table.write, Append) or table.once_by:
        return
    read = ", ".join(
        f"{name} ({declared.mode} of {declared.table})" for name, declared in inputs.items()
    )
    raise DeclarationError(
        f"{table.name}: Append(once_by=()) adds the rows of each run, and its inputs are"
        f" {read}, of which a later run may read the same rows again; expected the columns that"
        " make a row happen once.",
        next_step=(
            f"Name them, such as Append(once_by=({table.column_names[0]!r},)), or write by"
            " Merge(on=…)."
        ),
    )


def check_existing_rows(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Reject partition overwrites by new rows only, and `existing_rows` of another table.

    :raises DeclarationError: names the table, its inputs and the expected value.
    """
    foreign = sorted(
        name
        for name, declared in inputs.items()
        if declared.mode == "existing_rows" and declared.table != table.name
    )
    if foreign:
        raise DeclarationError(
            f"{table.name}: the input {', '.join(foreign)} reads existing_rows of another table;"
            f" expected {table.name}.",
            next_step="Read another table by latest(…).",
        )
    added = sorted(
        name
        for name, declared in inputs.items()
        if declared.mode == "incremental" and declared.by and not declared.outside
    )
    if added and not _keeps_rows(inputs) and table.overwritten_by:
        raise DeclarationError(
            f"{table.name} overwrites partitions, and its input {', '.join(added)} has only"
            " their new rows; the existing rows would be lost.",
            next_step=(
                f"Add an input existing_rows({table.name!r}, by={table.overwritten_by!r}), or read"
                " latest(…)."
            ),
        )


def check_overwrite_inputs(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Reject overwrites by new rows only, which would lose the rows of earlier runs.

    :param inputs: with version reads.
    :raises DeclarationError: names the table, its inputs and the expected value.
    """
    if isinstance(table.write, Overwrite) and not _keeps_rows(inputs):
        incremental_names = [
            name for name, declared in inputs.items() if declared.mode == "incremental"
        ]
        loss = "the existing rows would be lost"
        next_step = "Read latest(…), or write the table by Merge(on=…)."
    elif table.overwritten_by:
        incremental_names = [
            name
            for name, declared in inputs.items()
            if declared.mode == "incremental" and not declared.by
        ]
        loss = "a run of some partitions would lose the new rows of other partitions"
        next_step = "Read latest(…), or name the partition column in by=…."
    else:
        return
    if incremental_names:
        raise DeclarationError(
            f"{table.name} is overwritten, and its input {', '.join(incremental_names)} has only"
            f" rows that arrived since the last run; {loss}.",
            next_step=next_step,
        )


def check_rows_of(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Check that a table reads the table of its `rows_of`.

    :raises DeclarationError: names both tables and the inputs.
    """
    source = table.rows_of
    read = dict.fromkeys(declared.table for declared in inputs.values())
    if source is None or source.name in read:
        return
    raise DeclarationError(
        f"{table.name} has rows_of={source.name}, and reads {', '.join(read) or 'nothing'};"
        f" expected {source.name} among its inputs.",
        next_step="Read it, such as by versions_of(…) or incremental(…), or leave rows_of out.",
    )


def check_versions(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Check that a table can keep the newest versions of a versioned input.

    :raises DeclarationError: names the table, the input, the actual and the expected value.
    """
    for name, declared in versioned_inputs(inputs).items():
        owner = f"{table.name}: input {name} is versions_of({declared.table!r})"
        if isinstance(table.write, Append):
            raise DeclarationError(
                f"{owner}, and the table is appended to, which cannot replace earlier versions;"
                " expected Merge, Overwrite or OverwritePartitions.",
                next_step="Write the table by Merge(on=…), or read incremental(…).",
            )
        if table.versions is None and not isinstance(table.write, Merge):
            raise DeclarationError(
                f"{owner}, and the table does not declare what a version is; expected"
                " versions=Versions(of=…, newest=…).",
                next_step="Name the key in of=, and in newest= the columns that order versions.",
            )
        if table.overwritten_by and not declared.by:
            raise DeclarationError(
                f"{owner}, and the table is overwritten by partitions of"
                f" {table.overwritten_by}; expected by=…, the partition column.",
                next_step=f"Write versions_of({declared.table!r}, by=…).",
            )
        own = [
            other
            for other, other_input in inputs.items()
            if other_input.mode == "existing_rows"
        ]
        if own:
            raise DeclarationError(
                f"{owner}, for which the table's own rows are read already; expected no input"
                f" {', '.join(own)}.",
                next_step="Remove it from inputs=….",
            )


def _keeps_rows(inputs: Mapping[str, Input]) -> bool:
    """Whether existing rows of the overwritten partitions are read, and can be written again."""
    return any(
        declared.mode == "existing_rows" and not declared.outside
        for declared in inputs.values()
    )
