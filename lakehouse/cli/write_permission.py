"""What `lakehouse sql` needs permission for: a write to a table that the lakehouse computes from a
declaration.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from typing import NoReturn

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
    no check could tell them from rows that a function leaves out. So is a statement whose text
    does not tell what it deletes, such as a script.

    :raises UsageError: names the quarantine, and the command that notes why rows go; or the
        statement, and how it is written.
    """
    owners = {
        table.quarantine.name: table.name
        for table in state.declared.values()
        if table.quarantine
    }
    emptied = list(map(emptied_by, statements))
    if not owners or not any(emptied):
        return
    of_views = through_views(lambda: _tables(state, statements), statements)
    for number, patterns in enumerate(emptied, start=1):
        if ANY_TABLE in patterns or (patterns and number in of_views):
            _refuse_untold(number, len(statements), patterns)
        for name in owners:
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                raise UsageError(
                    f"This deletes rows of {name}, which were delivered and would be nowhere then,"
                    " or moves it to where they are not; nothing was run.",
                    next_step=(
                        f"`lakehouse quarantine clear {owners[name]} --why …` takes them out, all"
                        " or by --rule or --file, and keeps which they were, who cleared them and"
                        " why."
                    ),
                )


def _refuse_untold(number: int, statements: int, emptied: Sequence[str]) -> NoReturn:
    which = "this statement" if statements == 1 else f"statement {number} of {statements}"
    if ANY_TABLE not in emptied:
        names = ", ".join(name.removeprefix("*.") for name in emptied)
        raise UsageError(
            f"What {which} deletes cannot be told: {names} is no table of the catalog, and a view"
            " may be one of refused rows; nothing was run.",
            next_step="Name the table that holds the rows.",
        )
    raise UsageError(
        f"What {which} deletes cannot be told from its text, so that it may be refused rows, which"
        " would be nowhere then; nothing was run.",
        next_step=(
            "Write the statements of BEGIN … END, or the text of EXECUTE IMMEDIATE, as statements"
            " of their own with a semicolon between, and the names of their tables in full."
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
    of_views = through_views(lambda: _tables(state, statements), statements)
    return sorted(unclear | set(of_views))


def _tables(state: State, statements: Sequence[str]) -> list[str]:
    """Return the tables that statements may change rows of, and all that are declared."""
    named = chain.from_iterable(map(changed_rows_of, statements))
    return [*state.tables_there(filter(_NAME.fullmatch, named)), *state.declared]
