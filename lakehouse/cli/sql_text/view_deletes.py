"""Rows that a statement deletes through a view: Spark deletes them from the table under it."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from lakehouse.cli.sql_text.statements import changed_rows_of, targets

_VIEW = re.compile(r"\bview\b", re.IGNORECASE)


def through_views(tables: Callable[[], Sequence[str]], statements: Sequence[str]) -> list[int]:
    """Return the numbers of the statements that change rows of what may be a view, of which no
    text tells the tables.

    :param tables: lists the tables of the catalog; asked only where rows are changed.
    """
    numbers = []
    for number, statement in enumerate(statements, start=1):
        before = statements[: number - 1]
        for target in changed_rows_of(statement):
            if _is_created_as_view(target, before) or not _is_table(target, tables, before):
                numbers.append(number)
                break
    return numbers


def _is_created_as_view(target: str, before: Sequence[str]) -> bool:
    name = target.rpartition(".")[2]
    return any(_VIEW.search(statement) and name in statement.lower() for statement in before)


def _is_table(target: str, tables: Callable[[], Sequence[str]], before: Sequence[str]) -> bool:
    created = chain.from_iterable(map(targets, before))
    for name in chain(tables(), created):
        if fnmatchcase(name, target) or fnmatchcase(target, name):
            return True
    return False
