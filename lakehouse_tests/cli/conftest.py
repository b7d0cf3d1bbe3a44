"""The command line in this process, on a home of the test and the running session."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from lakehouse.cli.program import run
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.processes import Child, start_command
from lakehouse_tests.savepoint import FilledOnce


@dataclass(frozen=True)
class Ran:
    """Output lines and exit code of a command, without its progress."""

    code: int
    out: list[str]
    err: list[str]


Lakehouse = Callable[..., Ran]
FILLED_ONCE = ("blocked", "declared_fruits", "deletes", "fruits", "held", "sold", "twice")
"""Fixtures that fill a home for the tests of a file, each by its name."""


def put_fruits(home: Path, name: str, *rows: str, second: int | None = None) -> None:
    """Put a file into the inbox of the feed fruits, perhaps as one of a time."""
    inbox = home / "inbox" / "fruits"
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / name).write_text("\n".join(["id,fruit,berry", *rows, ""]), encoding="utf-8")
    if second is not None:
        os.utime(inbox / name, (1_700_000_000 + second,) * 2)


@pytest.fixture(scope="session")
def with_samples(tmp_path_factory: pytest.TempPathFactory) -> FilledOnce:
    """A home that the tests of a worker share who ask for `sample_fruits`."""
    return FilledOnce(tmp_path_factory.mktemp("samples_"))


@pytest.fixture
def home(request, tmp_path, with_samples, filled_by):
    """A new home, one with the sample files, or one that a fixture fills once per file."""
    for name in FILLED_ONCE:
        if name in request.fixturenames:
            return filled_by(name).home
    shares = "sample_fruits" in request.fixturenames
    return with_samples.home if shares else tmp_path / "home"


@pytest.fixture
def lakehouse(home, capsys, monkeypatch):
    """Call the command line as its user would."""
    monkeypatch.setenv("LAKEHOUSE_HOME", str(home))

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        printed = capsys.readouterr()
        said = [line for line in printed.err.splitlines() if not line.endswith(" …")]
        return Ran(code, printed.out.splitlines(), said)

    return call


@pytest.fixture
def started(home: Path) -> Iterator[Callable[..., Child]]:
    """Start `lakehouse`, and end it with the test, whatever becomes of it."""
    children: list[Child] = []

    def start(*arguments: str, env: dict[str, str] | None = None) -> Child:
        children.append(start_command([LAKEHOUSE, *arguments], home, env=env))
        return children[-1]

    yield start
    for child in children:
        child.kill()


@pytest.fixture
def table_there(settings: Settings) -> str:
    """The name of an empty table that nobody declared, made without a JVM."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    client = Catalog.of(settings).client
    client.create_namespace("t")
    client.create_table("t.there", Schema(NestedField(1, "id", LongType(), required=False)))
    return "t.there"


@pytest.fixture
def sold(request, lakehouse, filled_by):
    """An undeclared table `t.sold`, created once by `SOLD` of the test's file."""

    def fill() -> None:
        ran = lakehouse("sql", "--write", request.module.SOLD)
        assert ran.code == 0, ran.err

    filled_by("sold").bring_back(fill)


@pytest.fixture
def sample_fruits(lakehouse: Lakehouse, home: Path, with_samples: FilledOnce) -> None:
    """The ingested sample files of the feed fruits; shared if the file has no own home."""

    def fill() -> None:
        inbox = home / "inbox" / "fruits"
        inbox.mkdir(parents=True)
        for sample in files("lakehouse.sample_data.fruits").iterdir():
            if sample.name.endswith(".csv"):
                (inbox / sample.name).write_bytes(sample.read_bytes())
        assert lakehouse("ingest", "fruits").code == 0

    if home == with_samples.home:
        with_samples.bring_back(fill)
    else:
        fill()
