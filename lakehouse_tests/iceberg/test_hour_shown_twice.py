"""On a machine whose clock shows an hour twice, both of its moments are known, also to a client of
Spark Connect.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.hour_shown_twice import EXPECTED, ZONE, all_in_this_process
from lakehouse_tests.processes import start
from lakehouse_tests.spark_server import running_server

pytestmark = pytest.mark.spark


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in Berlin."""
    monkeypatch.setenv("TZ", ZONE)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def rows_of_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come to Python as they do to a client of Spark Connect, by its very code; on Spark 3.5,
    that has no way for it, as they do by themselves.
    """
    if is_spark_3():
        return
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    from pyspark.sql.conversion import ArrowTableToRowsConversion

    def collected(frame: DataFrame) -> list[Row]:
        return ArrowTableToRowsConversion.convert(frame.toArrow(), frame.schema)

    monkeypatch.setattr(ClassicFrame, "collect", collected)
    monkeypatch.setattr(
        ClassicFrame, "first", lambda frame: next(iter(collected(frame.limit(1))), None)
    )


@pytest.mark.long
@pytest.mark.usefixtures("in_berlin", "rows_of_connect")
@pytest.mark.parametrize("do", EXPECTED, ids=lambda do: do.__name__)
def test_both_moments_are_known(embedded_engine: Engine, do: Callable[[Engine], Any]) -> None:
    assert do(embedded_engine) == EXPECTED[do]


@pytest.mark.soak
def test_both_moments_are_known_to_a_client_of_a_server(settings: Settings) -> None:
    with running_server(settings) as remote:
        child = start(
            settings.home, all_in_this_process, env={"SPARK_REMOTE": remote, "TZ": ZONE}
        )
        found = child.result()
    expected = {do.__name__: value for do, value in EXPECTED.items()}
    assert found == json.loads(json.dumps(expected))
