"""What a table and its inputs must be to one another, said at load rather than when rows are
there twice.
"""

from collections.abc import Mapping

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.row_version_inputs import versioned_inputs
from lakehouse.tables.table import Append, IcebergTable, Merge, Overwrite


def check_appended_once(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Refuse to append what is read of other tables without a word on what makes each row
    happen once.

    Of what is `latest` or `as_of`, each run reads the same rows again. What is `incremental` is
    read in full again where rows of the input went, or the snapshot is gone that the last
    reading ended at.

    :raises DeclarationError: names the table, its inputs and what was expected.
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
    """Refuse to overwrite partitions by what came alone, and to take the rows of another table
    for existing ones.

    :raises DeclarationError: names the table, its inputs and what was expected.
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
            " what came to them; the rows that stand there would be lost.",
            next_step=(
                f"Add an input existing_rows({table.name!r}, by={table.overwritten_by!r}), or read"
                " latest(…)."
            ),
        )


def check_overwritten_whole(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Refuse to overwrite a table by what came to its inputs alone.

    So would be lost what stands from all earlier runs; and of a table that is overwritten by
    partitions, what came of those that the run does not compute, since it is not new to the next
    one.

    :param inputs: as they are read.
    :raises DeclarationError: names the table, its inputs and what was expected.
    """
    if isinstance(table.write, Overwrite) and not _keeps_rows(inputs):
        came = [name for name, declared in inputs.items() if declared.mode == "incremental"]
        lost = "the rows that stand would be lost"
        next_step = "Read latest(…), or write the table by Merge(on=…)."
    elif table.overwritten_by:
        came = [
            name
            for name, declared in inputs.items()
            if declared.mode == "incremental" and not declared.by
        ]
        lost = "a run of some partitions would lose what came for the others"
        next_step = "Read latest(…), or name in by=… the column that tells the partition."
    else:
        return
    if came:
        raise DeclarationError(
            f"{table.name} is overwritten, and its input {', '.join(came)} has only what came"
            f" since the last run; {lost}.",
            next_step=next_step,
        )


def check_rows_of(table: IcebergTable, inputs: Mapping[str, Input]) -> None:
    """Check that a table is computed from the one that it says its rows are of.

    :raises DeclarationError: names the table, that one, and what is read.
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
    """Check that a table can keep the newest of what an input of versions brings.

    :raises DeclarationError: names the table, the input, what was found and what was expected.
    """
    for name, declared in versioned_inputs(inputs).items():
        owner = f"{table.name}: input {name} is versions_of({declared.table!r})"
        if isinstance(table.write, Append):
            raise DeclarationError(
                f"{owner}, and the table is appended to, which replaces no earlier version;"
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
                f" {table.overwritten_by}; expected by=…, the column that tells them.",
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
                next_step="Leave it out of inputs=….",
            )


def _keeps_rows(inputs: Mapping[str, Input]) -> bool:
    """Whether rows that stand in what is overwritten are read, and can be written again."""
    return any(
        declared.mode == "existing_rows" and not declared.outside
        for declared in inputs.values()
    )
