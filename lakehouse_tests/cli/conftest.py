"""The command line in this process, on a home of the test's own and the session that is
there.
"""

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
    """What a command printed, line by line, and its exit code; what it said of its progress is
    left out.
    """

    code: int
    out: list[str]
    err: list[str]


Lakehouse = Callable[..., Ran]


@pytest.fixture(scope="session")
def with_samples(tmp_path_factory: pytest.TempPathFactory) -> FilledOnce:
    """A home that the tests of a worker share who ask for `sample_fruits`."""
    return FilledOnce(tmp_path_factory.mktemp("samples_"))


@pytest.fixture
def home(
    request: pytest.FixtureRequest, tmp_path: Path, with_samples: FilledOnce, filled: FilledOnce
) -> Path:
    """A home of the test's own, which is not there yet, one that has the sample files, or that of
    all in a file who ask for `sold`.
    """
    if "sold" in request.fixturenames:
        return filled.home
    shares = "sample_fruits" in request.fixturenames
    return with_samples.home if shares else tmp_path / "home"


@pytest.fixture
def lakehouse(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Lakehouse:
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
def sold(request: pytest.FixtureRequest, lakehouse: Lakehouse, filled: FilledOnce) -> None:
    """A table `t.sold` that nobody declared, as `SOLD` of the test's file makes it: once for all of
    them.
    """

    def fill() -> None:
        ran = lakehouse("sql", "--write", request.module.SOLD)
        assert ran.code == 0, ran.err

    filled.bring_back(fill)


@pytest.fixture
def sample_fruits(lakehouse: Lakehouse, home: Path, with_samples: FilledOnce) -> None:
    """The sample files of the feed fruits, ingested: once for all, where a file has no homes of
    its own.
    """

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
