"""Workers without Python packages read delivered files with those of an archive, and no file of
the driver.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lakehouse.ingestion import collect
from lakehouse.ingestion.land import land
from lakehouse.ingestion.staging.executor_reading import executor_reading
from lakehouse.ingestion.staging.staged_rows import open_staging
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.spark.executor_archive import python_here, write_archive
from lakehouse.storage.s3 import open_bucket
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import bronze_table
from lakehouse_tests.cluster.connect_server import connect_server, printed_configuration
from lakehouse_tests.cluster.spark_cluster import on_account, running_cluster
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.ingestion.conftest import FRUITS
from lakehouse_tests.processes import start

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

_KEY = "env/executors.tar.gz"
BARE_PYTHON = os.path.realpath(sys.executable)
"""That which the virtual environment was made of, which has none of its packages."""


def land_waiting() -> dict[str, Any]:
    """Land what waits in the inbox of the fruits."""
    settings = Settings.from_env()
    engine = open_engine(settings)

    def refuse(*_: object) -> None:
        raise AssertionError("The driver read a file")

    setattr(collect, "_stage", refuse)  # noqa: B010
    done = land(
        engine,
        FRUITS,
        bronze_table(FRUITS, "Fruits as delivered."),
        open_store(settings),
        settings.home,
        bucket=open_staging(settings),
        executors=executor_reading(settings, engine.session),
    )
    table = engine.catalog.load(FRUITS.table).scan().to_arrow()
    return {
        "rows": sorted(table.select(["id", "_source_file"]).to_pylist(), key=str),
        "rejected": [str(file.why) for file in done.delivery.rejected],
        "warnings": done.warnings,
    }


def read_and_check(settings: Settings, home: Path, env: dict[str, str]) -> list[str]:
    """Land three files and refuse one; return what was warned of."""
    store = open_store(settings)
    for number in range(3):
        store.write_text(f"{FRUITS.inbox}{number}.csv", f"id,fruit,berry\n{number},Fig,true\n")
    store.write_text(f"{FRUITS.inbox}wrong.csv", "id,fruit,berry\n1,Fig,true\n2,Fig\n")
    env = on_account(settings) | {"LAKEHOUSE_EXECUTORS_READ": "always"} | env
    done = start(home, land_waiting, env=env).result()

    assert done["rows"] == [{"id": str(n), "_source_file": f"{n}.csv"} for n in range(3)]
    assert done["rejected"] == [
        "a ragged row: found 2 fields in row 2; expected 3, as in the header. Correct the file"
        " and put it back."
    ]
    staging = open_staging(settings)
    assert staging is not None
    assert staging.store.all_versions("staging/") == []
    warnings: list[str] = done["warnings"]
    return warnings


@pytest.fixture(scope="module")
def bare_cluster(s3a_jars, tmp_path_factory):
    """A cluster whose workers find a Python without packages on their PATH, and no other first."""
    folder = tmp_path_factory.mktemp("bare")
    programs = folder / "bin"
    programs.mkdir()
    (programs / f"python{python_here()}").symlink_to(BARE_PYTHON)
    with running_cluster(
        settings_at(folder / "home"),
        folder / "parts",
        kept=[programs],
        search_path=f"{programs}:/usr/bin:/bin",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `lakehouse pack-python` makes."""
    folder = tmp_path_factory.mktemp("archive")
    file = folder / "executors.tar.gz"
    write_archive(settings_at(folder / "home"), str(file))
    return file


def test_executors_read_by_the_archive(bare_cluster, archive, aws_settings, home):
    env = bare_cluster.client_environment | {"LAKEHOUSE_EXECUTOR_ARCHIVE": str(archive)}

    assert read_and_check(aws_settings, home, env) == []


def test_a_client_of_a_server_sends_it(bare_cluster, archive, aws_settings, home):
    store = open_bucket(aws_settings)
    store.put(archive, _KEY)
    given = printed_configuration(aws_settings)
    with connect_server(bare_cluster, aws_settings, given) as server:
        env = server.client_environment | {"LAKEHOUSE_EXECUTOR_ARCHIVE": store.uri(_KEY)}
        assert read_and_check(aws_settings, home, env) == []
