"""Check that a table's declarations about data subjects are consistent."""

from collections.abc import Collection
from typing import get_args

from lakehouse.errors import DeclarationError
from lakehouse.tables.declaration import OnErasure, TableDeclaration


def check_subject(table: TableDeclaration, own_of_quarantine: Collection[str]) -> None:
    """Check a table's subject and erasure options against the columns that a quarantine fills
    itself.
    """
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
