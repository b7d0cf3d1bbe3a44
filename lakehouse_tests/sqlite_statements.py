"""What is asked of SQLite, which the embedded catalog and Dagster's storages are in."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, event


@contextmanager
def statements() -> Iterator[list[str]]:
    """Note each statement, of whatever file."""
    asked: list[str] = []

    def note(_connection, _cursor, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", note)
