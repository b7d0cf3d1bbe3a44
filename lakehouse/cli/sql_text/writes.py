"""`lakehouse sql --write`: tables to lock, protected quarantines, and preserved watermarks.

Tables are found by their names in a statement. One whose name is an expression is not locked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse.cli.sql_text.read_only import is_query
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.engine import Engine
    from lakehouse.tables.table import IcebergTable

_WORD = re.compile(r"\w+")
_REMOVING = re.compile(
    r"\b(DELETE|TRUNCATE|DROP|REPLACE|OVERWRITE|RENAME"
    # Procedures that give the readers of a table another snapshot.
    r"|ROLLBACK_TO_\w+|SET_CURRENT_SNAPSHOT|FAST_FORWARD|CHERRYPICK_SNAPSHOT|PUBLISH_CHANGES)\b",
    re.IGNORECASE,
)


def tables_in(text: str, tables: Iterable[str]) -> list[str]:
    """Return the tables whose name, without its namespace, is a word of a text."""
    words = set(_WORD.findall(text.lower()))
    return sorted(name for name in tables if name.rpartition(".")[2] in words)


def lockable_tables(
    declared: "Mapping[str, IcebergTable]", statements: Sequence[str]
) -> list[str]:
    """Return the declared tables in statements; raises UsageError to protect quarantined rows."""
    owners = {q.name: table.name for table in declared.values() if (q := table.quarantine)}
    lockable: set[str] = set()
    for statement in statements:
        if is_query(statement):
            continue
        named = tables_in(statement, declared)
        removing = _REMOVING.search(statement)
        for quarantine in owners.keys() & set(named) if removing else ():
            raise UsageError(
                f"A statement with {removing[0].upper() if removing else ''} must not name the"
                f" quarantine {quarantine}, whose rows it could delete; nothing was run.",
                next_step=f"`lakehouse quarantine clear {owners[quarantine]} --why …` removes"
                " rows, and records which, who removed them and why.",
            )
        lockable.update(named)
    return sorted(lockable)


@contextmanager
def kept_watermarks(engine: "Engine", statement: str, tables: Iterable[str]) -> Iterator[None]:
    """Preserve the watermarks of tables before expiry and after compaction."""
    from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks

    text = statement.lower()
    for table in tables if "expire_snapshots" in text else ():
        carry_watermarks(engine, table)
    yield
    for table in tables if "rewrite_" in text else ():
        carry_watermarks(engine, table)
