"""SQLite files that are kept open while they are opened again and again."""

from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from lakehouse.orchestration.event_log import kept_open

pytestmark = pytest.mark.unit


def write(file: Path, value: int) -> None:
    """Open a file, write a row and close it, as Dagster does for each event."""
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("PRAGMA journal_mode=WAL"))
        connection.execute(text("CREATE TABLE IF NOT EXISTS found (value INTEGER)"))
        connection.execute(text(f"INSERT INTO found VALUES ({value})"))
    engine.dispose()


def values(file: Path) -> list[int]:
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with engine.connect() as connection:
        return [
            row[0] for row in connection.execute(text("SELECT value FROM found ORDER BY value"))
        ]


def log(file: Path) -> Path:
    """Return where SQLite keeps what it has yet to write into a file."""
    return file.with_name(f"{file.name}-wal")


def test_the_log_of_a_file_stays_until_the_end_and_nothing_is_lost(tmp_path: Path) -> None:
    inside, outside = tmp_path / "home" / "in.db", tmp_path / "out.db"
    inside.parent.mkdir()
    with kept_open(inside.parent):
        for value in range(3):
            write(inside, value)
            write(outside, value)
        assert log(inside).exists()
        assert not log(outside).exists()
        assert values(inside) == [0, 1, 2]
    assert not log(inside).exists()
    assert values(inside) == [0, 1, 2]


def test_few_of_many_files_are_kept_open(tmp_path: Path) -> None:
    files = [tmp_path / f"{number:02}.db" for number in range(20)]
    with kept_open(tmp_path):
        for file in files:
            write(file, 1)
            write(file, 2)
        assert [file for file in files if log(file).exists()] == files[-8:]
    assert [values(file) for file in files] == [[1, 2]] * 20


def test_only_inside_the_disk_is_not_waited_for_at_each_commit(tmp_path: Path) -> None:
    file = tmp_path / "in.db"
    write(file, 1)

    def waits() -> int:
        with create_engine(f"sqlite:///{file}", poolclass=NullPool).connect() as connection:
            return connection.execute(text("PRAGMA synchronous")).scalar_one()

    normal, full = 1, 2
    with kept_open(tmp_path):
        assert waits() == normal
    assert waits() == full
