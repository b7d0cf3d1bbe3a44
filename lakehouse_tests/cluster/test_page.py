"""Runs the page on clusters, whose tables then equal the truth."""

import os
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.sample_data.bnpl.truth import Truth
from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.cluster.connect_server import server_of_command
from lakehouse_tests.docs.markdown import ROOT, Block, sections
from lakehouse_tests.docs.shell import commands
from lakehouse_tests.processes import start_command

pytestmark = pytest.mark.e2e
PAGE = ROOT / "docs" / "cluster.md"
FRUITS = {"bronze.raw_fruits": 180, "silver.fruits": 155}


class Shell:
    """Runs the commands of a page as processes, in one environment that they change.

    `names` is what stands on the page for a place, and what it is here.
    """

    def __init__(self, home: Path, names: dict[str, str]) -> None:
        self.home = home
        self.names = names
        self.env = {"PATH": f"{Path(LAKEHOUSE).parent}:{os.environ['PATH']}"}

    def do(self, block: Block) -> str:
        """Run the commands of a block; return what they said."""
        return "".join(map(self._run, commands(block.text)))

    def here(self, command: str) -> str:
        """Return a command of the page with the places that are here."""
        for name, place in self.names.items():
            command = command.replace(name, place)
        return command

    def _run(self, command: str) -> str:
        command = self.here(command)
        first, *words = shlex.split(command)
        if words == ["setup"]:
            # The cluster's own start has fetched the jars; what else it makes takes half a minute.
            return ""
        if first == "export":
            name, _, value = words[0].partition("=")
            self.env[name] = value
            return ""
        if first == "unset":
            # The tests' own processes have some by themselves.
            self.env |= dict.fromkeys(words, "")
            return ""
        folder = self.home.parent
        ran = start_command(["bash", "-c", command], self.home, env=self.env, cwd=folder)
        assert ran.status() == 0, f"{command}: {ran.said}"
        return ran.said


def rows_of(settings: Settings, table: str) -> int:
    """Return how many rows a table has, counted in its files."""
    return Catalog.of(settings).load(table).scan().to_arrow().num_rows


def check_demo(settings: Settings, truth: Truth) -> None:
    """See that the tables of both feeds are what the truth says."""
    assert {name: rows_of(settings, name) for name in FRUITS} == FRUITS
    summary = Catalog.of(settings).load("gold.bnpl_daily_summary").scan().to_arrow()
    found = [tuple(map(str, row.values())) for row in summary.to_pylist()]
    expected = [tuple(map(str, vars(row).values())) for row in truth.daily_summary]
    assert sorted(found) == sorted(expected)
    assert rows_of(settings, "bronze.bnpl_transactions_raw") == truth.totals["bronze"]
    assert rows_of(settings, "silver.bnpl_transactions_clean") == truth.totals["clean"]


VISITS = [{"visit": number} for number in range(3)]


def fill(settings: Settings) -> None:
    """Put a table into a home, as a lakehouse of one machine has it."""
    catalog = Catalog.of(settings).client
    catalog.create_namespace("silver")
    rows = pa.Table.from_pylist(VISITS)
    catalog.create_table("silver.visits", rows.schema).append(rows)


def visits(settings: Settings) -> list[dict[str, int]]:
    """Return the rows of that table, wherever it is."""
    rows: list[dict[str, int]] = (
        Catalog.of(settings).load("silver.visits").scan().to_arrow().to_pylist()
    )
    return sorted(rows, key=lambda row: row["visit"])


def spark_page_of(settings: Settings, table: str) -> str:
    """Return where Spark's page was, as the last materialization of a table says."""
    with open_instance(settings) as instance:
        event = instance.get_latest_materialization_event(asset_key(table))
    assert event is not None and event.asset_materialization is not None
    return WriteMetadata.from_metadata(event.asset_materialization.metadata).spark_page or ""


def shell_blocks(title: str) -> list[Block]:
    """Return the blocks of a section that are run."""
    (section,) = (one for one in sections(PAGE) if one.title == title)
    return [block for block in section.blocks if block.language == "bash"]


def test_the_page_on_clusters_goes_as_it_says(cluster, aws_settings, home, truth):
    names = {
        "spark://master:7077": cluster.url,
        "DRIVER_HOST=driver": "DRIVER_HOST=127.0.0.1",
        "/opt/jars": str(jars.jar_dir(aws_settings).expanduser()),
    }
    shell = Shell(home, names)
    shell.env["AWS_ENDPOINT_URL"] = aws_settings.endpoint_url
    shell.env["AWS_REGION"] = aws_settings.region
    one_machine = Settings(home=home.parent / ".lakehouse")
    fill(one_machine)
    (copied,) = shell_blocks("Tables of a home")
    assert "silver.visits" in shell.do(copied)
    assert visits(aws_settings) == visits(one_machine) == VISITS
    (standalone,) = shell_blocks("A standalone cluster")
    said = shell.do(standalone)
    assert f"{cluster.url} answers" in said
    check_demo(aws_settings, truth)
    assert spark_page_of(aws_settings, "silver.fruits").startswith("http://127.0.0.1:")

    print_configuration, start, connect = shell_blocks("A Spark Connect server")
    shell.do(print_configuration)
    (command,) = map(shell.here, commands(start.text))
    printed = home.parent / "server.conf"
    with server_of_command(cluster, aws_settings, command, printed) as server:
        shell.names["sc://server:15002"] = server.remote
        said = shell.do(connect)
    assert f"{server.remote} answers, has what tables need, and reads what is staged" in said
    assert "155" in said

    (make_archive,) = shell_blocks("Which Python where")
    assert "s3://lake/env/executors.tar.gz: boto3 " in shell.do(make_archive)
