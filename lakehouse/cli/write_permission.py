"""What `lakehouse sql` needs permission for: a write to a table that the lakehouse computes from a
declaration.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from lakehouse.cli.call_context import State
from lakehouse.cli.sql_text.statements import (
    changed_rows_of,
    declared_targets,
    emptied_by,
    targets,
)
from lakehouse.cli.sql_text.table_names import ANY_TABLE
from lakehouse.cli.sql_text.view_deletes import through_views
from lakehouse.errors import UsageError

_NAME = re.compile(r"[\w-]+\.[\w-]+")
"""A table, and no pattern of tables."""


@dataclass(frozen=True)
class Written:
    """The declared tables that some statements write to: all of them where a text does not
    tell.

    `unclear` are the numbers of the statements of which it does not.
    """

    tables: Sequence[str]
    unclear: Sequence[int]
    statements: int

    def require_permission(self) -> None:
        """Refuse to write without permission.

        :raises UsageError: names the tables, or the statement of which the text does not tell
            any.
        """
        if self.tables:
            raise UsageError(
                self._why(),
                next_step=(
                    "Add --write to do it all the same; the next run may recompute those rows."
                ),
            )

    def describe_recomputed(self) -> list[str]:
        """Say that what was written to declared tables may not stay."""
        if self.unclear:
            return [
                "Declared tables that this wrote to are computed: the next run may recompute"
                " those rows."
            ]
        warning = "is computed from its declaration: the next run may recompute these rows."
        return [f"{table} {warning}" for table in self.tables]

    def _why(self) -> str:
        if not self.unclear:
            names = ", ".join(self.tables)
            return f"This writes to {names}, which the lakehouse computes from a declaration."
        which = "this statement"
        if self.statements > 1:
            which = f"statement {self.unclear[0]} of {self.statements}"
        return (
            f"What {which} writes to cannot be told from its text, so that it may be any"
            " declared table."
        )


def refuse_loss_of_refused_rows(state: State, statements: Sequence[str]) -> None:
    """Refuse to delete refused rows by SQL, also with permission: they would be in no table, and
    no check could tell them from rows that a function leaves out. A statement whose text does not
    tell what it deletes is let through with permission.

    :raises UsageError: names the quarantine, and the command that notes why rows go.
    """
    owners = {
        table.quarantine.name: table.name
        for table in state.declared.values()
        if table.quarantine
    }
    for statement in statements:
        emptied = emptied_by(statement)
        if ANY_TABLE in emptied:
            continue
        for name in declared_targets(statement, owners) if emptied else ():
            raise UsageError(
                f"This deletes rows of {name}, which were delivered and would be nowhere then;"
                " nothing was run.",
                next_step=(
                    f"`lakehouse quarantine clear {owners[name]} --why …` takes them out, all or"
                    " by --rule or --file, and keeps which they were, who cleared them and why."
                ),
            )


def find_written_tables(state: State, statements: Sequence[str]) -> Written:
    """Tell from some statements' text which declared tables they write to, or may write to."""
    unclear = _unclear_targets(state, statements)
    if unclear:
        return Written(sorted(state.declared), unclear, len(statements))
    tables: set[str] = set()
    for statement in statements:
        if targets(statement):
            tables.update(declared_targets(statement, state.declared))
    return Written(sorted(tables), (), len(statements))


def _unclear_targets(state: State, statements: Sequence[str]) -> list[int]:
    numbered = enumerate(statements, start=1)
    unclear = {number for number, statement in numbered if ANY_TABLE in targets(statement)}

    def tables() -> list[str]:
        named = chain.from_iterable(map(changed_rows_of, statements))
        return [*state.tables_there(filter(_NAME.fullmatch, named)), *state.declared]

    return sorted(unclear | set(through_views(tables, statements)))
