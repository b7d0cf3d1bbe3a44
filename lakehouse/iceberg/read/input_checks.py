"""What a table and its inputs must be to one another, said at load rather than when rows are
there twice.
"""

from collections.abc import Mapping

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.table import Append, IcebergTable


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
        f"{name} ({given.mode} of {given.table})" for name, given in inputs.items()
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
