"""Executors read delivered files from a bucket, without files of the driver."""

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
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import bronze_table
from lakehouse_tests.cluster.lake import lake_on
from lakehouse_tests.cluster.spark_cluster import on_account
from lakehouse_tests.ingestion.conftest import FRUITS
from lakehouse_tests.processes import start

pytestmark = [pytest.mark.e2e, pytest.mark.soak]


def land_waiting(*, driver_reads: bool) -> dict[str, Any]:
    """Land what waits in the inbox of the fruits."""
    settings = Settings.from_env()
    engine = open_engine(settings)

    def refuse(*_: object) -> None:
        raise AssertionError("The driver read a file")

    if not driver_reads:
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


def read_and_check(
    settings: Settings, home: Path, env: dict[str, str], *, driver_reads: bool
) -> list[str]:
    """Land three files and refuse one; return what was warned of."""
    store = open_store(settings)
    for number in range(3):
        store.write_text(f"{FRUITS.inbox}{number}.csv", f"id,fruit,berry\n{number},Fig,true\n")
    store.write_text(f"{FRUITS.inbox}wrong.csv", "id,fruit,berry\n1,Fig,true\n2,Fig\n")
    env = on_account(settings) | {"LAKEHOUSE_EXECUTORS_READ": "always"} | env
    done = start(home, land_waiting, env=env, driver_reads=driver_reads).result()

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


def test_executors_behind_a_connect_server_read_files(aws_connect, aws_settings, home):
    env = aws_connect.client_environment | {"LAKEHOUSE_EXECUTOR_PYTHON": sys.executable}

    assert read_and_check(aws_settings, home, env, driver_reads=False) == []


BARE_PYTHON = os.path.realpath(sys.executable)
"""That which the virtual environment was made of, which has none of its packages."""


def test_without_a_python_the_driver_reads(cluster, aws_settings, home):
    """`test_small_forms` has executors whose Python lacks pyarrow."""
    with lake_on(cluster, aws_settings, "classic") as lake:
        env = {**lake.env, "LAKEHOUSE_EXECUTOR_PYTHON": "/no/python"}
        (warning,) = read_and_check(aws_settings, home, env, driver_reads=True)

    assert 'Cannot run program "/no/python"' in warning
    assert "\n" not in warning
