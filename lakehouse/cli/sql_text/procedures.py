"""Procedures that a person calls on a table: which it is, and what must not get lost by it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lakehouse.cli.sql_text.procedure_calls import Call
from lakehouse.cli.sql_text.statements import call_of, declared_targets, targets
from lakehouse.cli.sql_text.table_names import ANY_TABLE, patterns
from lakehouse.errors import UsageError
from lakehouse.tables.escaping import shell_word

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.engine import Engine

_EXPIRY = "expire_snapshots"
_REWRITING = "rewrite_"


def check_calls(statements: Sequence[str]) -> None:
    """Refuse a procedure on a table that cannot be told from its text: it would run without
    that table's lock.

    :raises UsageError: names the procedure, and says how its table is written.
    """
    for call in filter(None, map(call_of, statements)):
        if call.writes and any("*" in pattern for pattern in patterns(call.table)):
            raise UsageError(
                f"Which table CALL {call.procedure or 'of an unknown procedure'} is about"
                " cannot be told from its text; expected its full name as one text.",
                next_step="Write table => 'namespace.table'.",
            )


def called_tables(statements: Sequence[str]) -> list[str]:
    """Return the tables that procedures are called on which may change them."""
    tables = set()
    for call in map(call_of, statements):
        table = _table_of(call) if call and call.writes else None
        if table:
            tables.add(table)
    return sorted(tables)


def carry_before(engine: "Engine", statement: str, declared: Sequence[str]) -> None:
    """Keep the watermarks of the tables that a statement may expire snapshots of; in their
    locks.

    :param declared: the tables that a statement of which the text tells nothing may be about.
    """
    from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks

    for table in _expired(statement, declared):
        carry_watermarks(engine, table)


def carry_after(engine: "Engine", statement: str) -> None:
    """Keep the watermark of a table that a statement has compacted, whoever expires its
    snapshots later.

    A rollback carries nothing: the watermark goes back with the rows.
    """
    from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks

    call = call_of(statement)
    if call and call.procedure.startswith(_REWRITING) and (table := _table_of(call)):
        carry_watermarks(engine, table)


def name_maintain(statements: Sequence[str]) -> list[str]:
    """Say of each table that snapshots are expired of by hand what does that with more care."""
    tables = set()
    for call in map(call_of, statements):
        if call and call.procedure == _EXPIRY and (table := _table_of(call)):
            tables.add(table)
    return [
        f"`lakehouse maintain {shell_word(table)}` expires what is old, and keeps what tags and"
        " readers still need."
        for table in sorted(tables)
    ]


def _expired(statement: str, declared: Sequence[str]) -> Iterator[str]:
    call = call_of(statement)
    if call is None and ANY_TABLE in targets(statement):
        yield from declared_targets(statement, declared)
    elif call and call.procedure == _EXPIRY and (table := _table_of(call)):
        yield table


def _table_of(call: Call) -> str | None:
    """Return `namespace.table`; None where the text does not tell it, or leaves the namespace
    to the session.
    """
    name = next(patterns(call.table), None)
    return None if name is None or "*" in name else name
