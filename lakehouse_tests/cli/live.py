"""`lakehouse dev` as a process, and files that arrive in its inbox."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
import requests

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.orphaned_runs import worker_of
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse_tests.cli.commands import (
    LAKEHOUSE,
    answers,
    free_port,
    is_alive,
    processes_below,
)
from lakehouse_tests.processes import Child, start_command, wait_for

SECONDS = 180
"""How long anything is waited for."""
_BY_A_SCRIPT = ["sh", "-c", 'trap "" INT; exec "$0" "$@"']
"""Background processes of a script ignore Ctrl-C, and so do their children."""


class Live:
    """A running lakehouse and its inbox; all its processes end with it."""

    dev: Child
    port: int

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._children: list[Child] = []
        self._catalog, self._store = Catalog.of(settings), open_store(settings)

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.kill()

    def start(self, port: int | None = None, *, by_a_script: bool = False, **env: str) -> Child:
        """Start `lakehouse dev`, and wait for its UI."""
        self.port = port or free_port()
        before = _BY_A_SCRIPT if by_a_script else []
        self.dev = self._start([*before, LAKEHOUSE, "dev", "--port", str(self.port)], env)
        wait_for(lambda: answers(self.port, self.dev), "the UI", SECONDS)
        return self.dev

    def end(self, sent: int, *, seconds: float = SECONDS) -> int:
        """Send a signal, return the exit status, and wait for the end of all children."""
        below = processes_below(self.dev.process.pid)
        self.dev.process.send_signal(sent)
        status = self.dev.status(seconds)
        wait_for(
            lambda: not any(is_alive(pid) for pid in below), "the end of its children", SECONDS
        )
        return status

    def command(self, *arguments: str) -> Child:
        """Start a command beside it."""
        return self._start([LAKEHOUSE, *arguments], {})

    def _start(self, command: list[str], env: dict[str, str]) -> Child:
        self._children.append(start_command(command, self.settings.home, env=env))
        return self._children[-1]

    def drop(self, name: str, *rows: str) -> None:
        """Deliver a file, which appears whole."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text("\n".join(["id,fruit,berry", *rows, ""]))
            self._store.put(path, f"inbox/fruits/{name}")

    def rows(self, table: str, *columns: str) -> list[tuple]:
        """The rows of a table, read without Spark."""
        if not self._catalog.has(table):
            return []
        found = self._catalog.load(table).scan(selected_fields=columns).to_arrow().to_pylist()
        return sorted(tuple(row[column] for column in columns) for row in found)

    def wait_for_fruits(self, *names: str) -> None:
        """Wait until silver knows some fruits, whatever else it knows."""
        expected = {(name,) for name in names}
        wait_for(
            lambda: expected <= set(self.rows("silver.fruits", "fruit")),
            f"the fruits {names}",
            SECONDS,
        )

    def wait_for_an_empty_inbox(self) -> None:
        """Wait until each file is archived, or refused."""
        wait_for(lambda: not self._store.objects("inbox/fruits/"), "an empty inbox", SECONDS)

    def launch(self, job: str) -> None:
        """Launch a job as the button of the UI does."""
        where = {
            "repositoryLocationName": "lakehouse.definitions",
            "repositoryName": "__repository__",
        }
        asked = {"selector": where | {"pipelineName": job}, "runConfigData": {}}
        query = (
            "mutation($asked: ExecutionParams!) { launchRun(executionParams: $asked) {"
            " __typename } }"
        )
        said = self.ask(query, asked=asked)
        assert said["launchRun"]["__typename"] == "LaunchRunSuccess", said

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Ask the UI's server."""
        asked = {"query": query, "variables": variables}
        said = requests.post(
            f"http://127.0.0.1:{self.port}/graphql", json=asked, timeout=60
        ).json()
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
        wait_for(
            lambda: not {"QUEUED", "STARTING", "STARTED"} & set(self.statuses()),
            "the end of all runs",
            SECONDS,
        )

    def statuses(self) -> list[str]:
        """What became of the runs, the first one first."""
        with open_instance(self.settings) as instance:
            return [run.status.value for run in reversed(instance.get_runs())]
