"""`lakehouse sql --write`: tables to lock, protected quarantines, and preserved watermarks."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse.cli.sql_text.read_only import is_query
from lakehouse.cli.sql_text.statements import first_word, named_tables, plain_text, targets
from lakehouse.errors import UsageError
from lakehouse.tables.sql_tokens import UNCLEAR_COMMENT

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.engine import Engine
    from lakehouse.tables.table import IcebergTable

_REMOVING = re.compile(
    r"\b(DELETE|TRUNCATE|DROP|REPLACE|OVERWRITE|RENAME TO|EXECUTE|CALL IDENTIFIER|SNAPSHOT-ID"
    r"|TBLPROPERTIES.*\\"
    # Procedures that give the readers of a table another snapshot.
    r"|ROLLBACK_TO_\w+|SET_CURRENT_SNAPSHOT|FAST_FORWARD|CHERRYPICK_SNAPSHOT|PUBLISH_CHANGES)\b"
)
_EXPRESSION = re.compile(r"\b(IDENTIFIER \(|EXECUTE\b)")
_CALL = re.compile(r"CALL [\w`.]+ \( (?:(?:.*, )?TABLE => )?'[\w`-]+(?:\.[\w`-]+)+' [,)]")


def lockable_tables(
    declared: "Mapping[str, IcebergTable]",
    exists: Callable[[str], bool],
    statements: Sequence[str],
) -> list[str]:
    """Return the declared tables that statements can change; all of them if that is unclear.

    :param exists: whether the catalog has a table of this name.
    :raises UsageError: a statement can delete rows of a quarantine.
    """
    quarantines = {q.name: table.name for table in declared.values() if (q := table.quarantine)}
    lockable: set[str] = set()
    created: set[str] = set()
    for statement in statements:
        if is_query(statement):
            continue
        unclear = _unclear_target(statement, exists, created)
        created.update(table for head, table in targets(statement) if head == "CREATE TABLE")
        changed = {table for _, table in targets(statement)} or named_tables(statement)
        if quarantines and _REMOVING.search(plain_text(statement, with_literals=True)):
            _require_kept(statement, changed, quarantines, unclear)
        lockable.update(name for name in declared if unclear or _is_in(name, changed))
    return sorted(lockable)


def _unclear_target(
    statement: str, exists: Callable[[str], bool], created: Collection[str]
) -> str | None:
    """Return why a statement does not name its target table; None if it does."""
    text = plain_text(statement)
    if _EXPRESSION.search(text) or UNCLEAR_COMMENT in text:
        return "the name of its table is an expression"
    call = plain_text(statement, with_literals=True)
    if first_word(statement) == "CALL" and not _CALL.match(call):
        return "the name of its table is not one literal, such as table => 'silver.fruits'"
    for head, table in targets(statement):
        # Spark deletes through a view from the table that it reads.
        is_table = table in created or ("." in table and exists(table))
        if head.startswith(("DELETE", "UPDATE", "MERGE")) and not is_table:
            return f"{table} is not the full name of a table of the catalog"
    return None


def _require_kept(
    statement: str, changed: Iterable[str], quarantines: Mapping[str, str], unclear: str | None
) -> None:
    """Raise for a statement that can delete quarantined rows, which are in no other table."""
    word = first_word(statement)
    for name, table in quarantines.items():
        if _is_in(name, changed):
            raise UsageError(
                f"{word} may delete or hide rows of the quarantine {name}; nothing was run.",
                next_step=f"`lakehouse quarantine clear {table} --why …` removes rows, and"
                " records which, who removed them and why.",
            )
    if unclear or word == "BEGIN":
        reason = unclear or "it is a script"
        raise UsageError(
            f"{word} may delete rows of a quarantine: {reason}; nothing was run.",
            next_step="Write single statements with a semicolon between them, each with the full"
            " name of its table.",
        )


@contextmanager
def kept_watermarks(engine: "Engine", statement: str, tables: Iterable[str]) -> Iterator[None]:
    """Preserve the watermarks of locked tables before expiry and after compaction.

    A rollback restores the watermarks of its snapshot.
    """
    from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks

    text = plain_text(statement, with_literals=True)
    for table in tables if re.search("EXPIRE_SNAPSHOTS|EXECUTE|CALL IDENTIFIER", text) else ():
        carry_watermarks(engine, table)
    yield
    for table in tables if "REWRITE_" in text else ():
        carry_watermarks(engine, table)


def _is_in(table: str, names: Iterable[str]) -> bool:
    """Whether a table is in `names`, with or without its namespace."""
    return any(name in (table, table.partition(".")[2]) for name in names)
