"""A lakehouse in the tests' account whose Spark is a cluster, as its users work with it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.cluster.connect_server import connect_server, printed_configuration
from lakehouse_tests.cluster.spark_cluster import SparkCluster, on_account
from lakehouse_tests.processes import ROOT, start, start_command

KINDS = ("classic", "connect")
"""How a process has its Spark: by itself, or behind a Connect server."""


@dataclass(frozen=True)
class Lake:
    """A lakehouse; `env` is what its processes are told."""

    settings: Settings
    env: Mapping[str, str]
    folder: Path = ROOT
    """Where its commands run."""

    def run(self, *arguments: str, status: int = 0, **env: str) -> str:
        """Run a command, and return what it said.

        :param status: the exit status that is expected.
        """
        home = self.settings.home
        command = [LAKEHOUSE, *arguments]
        ran = start_command(command, home, env={**self.env, **env}, cwd=self.folder)
        assert ran.status() == status, f"{arguments}: {ran.said}"
        return ran.said

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Call a function in a process of its own, and return what it returned."""
        return start(self.settings.home, function, env={**self.env}, **arguments).result()

    def put(self, feed: str, *files: Path) -> None:
        """Deliver files."""
        store = open_store(self.settings)
        for file in files:
            store.put(file, f"inbox/{feed}/{file.name}")

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table, read without Spark."""
        rows: list[dict[str, Any]] = self.catalog.load(table).scan().to_arrow().to_pylist()
        return rows

    @property
    def catalog(self) -> Catalog:
        """What its tables are."""
        return Catalog.of(self.settings)


@contextmanager
def lake_on(cluster: SparkCluster, settings: Settings, kind: str) -> Iterator[Lake]:
    """A lakehouse in an account, on a cluster.

    :param kind: one of `KINDS`; a Connect server has what `lakehouse connect-conf` prints, and no
        more.
    """
    account = on_account(settings)
    if kind == "classic":
        yield Lake(settings, {**account, **cluster.client_environment})
        return
    with connect_server(cluster, settings, printed_configuration(settings)) as server:
        yield Lake(settings, {**account, **server.client_environment})
