"""A lakehouse that runs as its users let it: `lakehouse dev` as a process, and files that land in its inbox."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import requests

from lakehouse.iceberg.catalog import Catalog
from lakehouse.resources.dead_runs import worker_of
from lakehouse.resources.instance import open_instance
from lakehouse.resources.stores import open_store
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import answers, free_port
from lakehouse_tests.processes import Child, wait_for

SECONDS = 180
"""How long anything is waited for."""


class Live:
    """A lakehouse that runs, and the inbox of its feed fruits."""

    def __init__(self, settings: Settings, start: Callable[..., Child]) -> None:
        self.settings, self._start = settings, start
        self._catalog, self._store = Catalog.of(settings), open_store(settings)

    def start(self, port: int | None = None, **env: str) -> Child:
        self.port = port or free_port()
        child = self._start("dev", "--port", str(self.port), env=env)
        wait_for(lambda: answers(self.port, child), "the UI", SECONDS)
        return child

    def drop(self, folder: Path, name: str, *rows: str) -> None:
        """Deliver a file, which appears whole."""
        path = folder / name
        path.write_text("\n".join(["id,fruit,berry", *rows, ""]))
        self._store.put(path, f"inbox/fruits/{name}")

    def rows(self, table: str, *columns: str) -> list[tuple]:
        if not self._catalog.has(table):
            return []
        found = self._catalog.load(table).scan(selected_fields=columns).to_arrow().to_pylist()
        return sorted(tuple(row[column] for column in columns) for row in found)

    def wait_for_fruits(self, count: int) -> None:
        wait_for(lambda: len(self.rows("silver.fruits", "fruit")) == count, f"{count} fruits", SECONDS)

    def launch(self, job: str) -> None:
        """Launch a job as the button of the UI does."""
        where = {"repositoryLocationName": "lakehouse.definitions", "repositoryName": "__repository__"}
        asked = {"selector": where | {"pipelineName": job}, "runConfigData": {}}
        query = "mutation($asked: ExecutionParams!) { launchRun(executionParams: $asked) { __typename } }"
        said = self.ask(query, asked=asked)
        assert said["launchRun"]["__typename"] == "LaunchRunSuccess", said

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Ask the UI's server."""
        asked = {"query": query, "variables": variables}
        said = requests.post(f"http://127.0.0.1:{self.port}/graphql", json=asked, timeout=60).json()
        assert "errors" not in said, said
        return said["data"]

    def worker(self) -> int | None:
        """The process of a run that goes on."""
        with open_instance(self.settings) as instance:
            for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
                found = worker_of(instance, run.run_id)
                if found:
                    return found.pid
        return None

    def wait_for_runs(self) -> None:
        """Wait until no run goes on."""
        wait_for(lambda: not {"QUEUED", "STARTING", "STARTED"} & set(self.statuses()), "the end of all runs", SECONDS)

    def statuses(self) -> list[str]:
        """What became of the runs, the first one first."""
        with open_instance(self.settings) as instance:
            return [run.status.value for run in reversed(instance.get_runs())]
