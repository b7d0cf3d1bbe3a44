"""The package without its clone: a wheel, a project of its own, and a table of its own in it."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse_tests.cli.commands import answers, free_port
from lakehouse_tests.cli.wheels import install_wheel
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.processes import Child, start_command, wait_for
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
NOWHERE_ELSE = {"LAKEHOUSE_HOME": "", "PYTHONPATH": ""}
"""The home is that which the project says, and modules are those that are installed."""


@dataclass(frozen=True)
class Installed:
    """The programs of an environment, and where they work."""

    programs: Path
    root: Path

    def run(self, *arguments: str, program: str = "lakehouse") -> str:
        """Run a command in the folder, and return what it printed."""
        done = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.root,
            env=os.environ | NOWHERE_ELSE | {"LAKEHOUSE_SPARK_MEMORY": "1g"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *arguments: str) -> Child:
        """Start a command in the folder."""
        command = [str(self.programs / "lakehouse"), *arguments]
        return start_command(command, self.home, env=NOWHERE_ELSE, cwd=self.root)

    @property
    def home(self) -> Path:
        """Where the tables are."""
        return self.root / ".lakehouse"

    def rows(self, table: str) -> int:
        """How many rows a table has; none where it is not there."""
        catalog = Catalog.of(settings_at(self.home))
        return len(catalog.load(table).scan().to_arrow()) if catalog.has(table) else 0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A project with a feed of its own, of which no file was delivered yet."""
    folder = tmp_path_factory.mktemp("wheel")
    outside = Installed(install_wheel(folder), folder)
    probe = "import lakehouse; print(lakehouse.__file__)"
    assert str(folder) in outside.run("-c", probe, program="python")
    outside.run("init", "shop")
    shop = Installed(outside.programs, folder / "shop")
    path = put(folder, "orders_2026-03-01.csv", kinds.ORDERS)
    shop.run("plan", "--check")
    shop.run("new", "feed", str(path), "--time-zone", "UTC")
    shop.run("plan", "--check")
    return shop


def test_a_feed_of_a_project_is_begun(shop):
    tables = [table["table"] for table in json.loads(shop.run("status", "--format", "json"))]
    assert "silver.orders" in tables


def test_files_of_a_project_are_ingested_checked_and_what_is_wrong_is_told(shop):
    inbox = shop.home / "inbox" / "orders"
    put(inbox, "orders_1.csv", kinds.ORDERS)
    put(inbox, "orders_2.csv", "order,amount\n1,2\n")
    port = free_port()
    dev = shop.start("dev", "--port", str(port))
    try:
        wait_for(lambda: answers(port, dev), "the UI", 180)
        wait_for(lambda: shop.rows("silver.orders") == 40, "40 orders", 180)
        shop.run("check", "silver.orders")

        def told() -> list[str]:
            alerts = json.loads(shop.run("alerts", "--format", "json"))
            return [alert for alert in map(json.dumps, alerts) if "orders_2.csv" in alert]

        wait_for(told, "the alert of a refused file", 120)
        dev.process.send_signal(signal.SIGINT)
        assert dev.status(60) == 130
    finally:
        dev.kill()


@pytest.mark.soak
def test_the_tests_of_a_project_pass_and_dagster_loads_it(shop):
    assert "2 passed" in shop.run("-m", "pytest", "-q", program="python")
    for options in ([], ["-w", "workspace.yaml"]):
        shop.run("-m", "dagster", "definitions", "validate", *options, program="python")
