"""Files of a home are private, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.cli.program import run
from lakehouse.cli.project.doctor_checks import findings
from lakehouse.iceberg.values.write_result import Published
from lakehouse.ingestion.land import land
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.tables.feed import bronze_table
from lakehouse_tests.ingestion.conftest import FRUITS, Inbox

ROW = "id,fruit,berry\n1,Apple,false\n"


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """A shell whose files everybody reads."""
    former = os.umask(0o022)
    yield
    os.umask(former)


def open_paths(folder: Path) -> list[str]:
    """What others may read below a folder, and the folder itself."""
    paths = [folder, *folder.rglob("*")]
    modes = ((path, path.lstat().st_mode) for path in paths)
    return [
        f"{stat.filemode(mode)} {path.relative_to(folder.parent)}"
        for path, mode in modes
        if mode & 0o077
    ]


def delivered(home: Path, name: str, content: str) -> Inbox:
    """An inbox with a file that everybody may read."""
    inbox = Inbox(LocalObjectStore(home, settle_seconds=0), FRUITS)
    inbox.put(name, content).chmod(0o644)
    return inbox


def test_what_is_landed_archived_rejected_and_written_by_spark_is_closed(
    embedded_engine, settings
) -> None:
    with open_instance(settings):
        inbox = delivered(settings.home, "a.csv", ROW)
    delivered(settings.home, "b.csv", "id\n")

    done = land(
        embedded_engine, FRUITS, bronze_table(FRUITS, "Fruits."), inbox.store, settings.home
    )

    assert isinstance(done.outcome, Published)
    assert list((settings.home / "warehouse").rglob("*.parquet"))
    assert list((settings.home / "archive").rglob("*.csv"))
    assert list((settings.home / "rejected").rglob("*.csv"))
    assert open_paths(settings.home) == []


def test_what_a_command_makes_is_closed(home: Path, monkeypatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_HOME", str(home))

    assert run(["status"]) == 0

    assert (home / "masking.key").is_file()
    assert open_paths(home) == []


@pytest.mark.long
def test_doctor_names_a_home_that_is_open_and_what_closes_it(settings) -> None:
    settings.make_home()
    assert next(line for line in findings(settings) if line.name == "home").ok
    settings.home.chmod(0o755)

    (line,) = [line for line in findings(settings) if line.name == "home"]

    assert (line.ok, line.found) == (
        False,
        f"{settings.home} is open to other users (mode 755)",
    )
    assert line.next_step == f"Run `chmod -R go-rw {settings.home}`."
