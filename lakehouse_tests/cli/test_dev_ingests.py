"""Files that land while `lakehouse dev` runs: each row once, in the order of arrival, whatever is killed meanwhile."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from lakehouse.resources.stores import open_store
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import java_below
from lakehouse_tests.cli.live import SECONDS, Live
from lakehouse_tests.processes import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FILES = 50
MANY, A_RUN, THE_SPARK = 200, 0.05, 0.01
AT_LEAST = 3


def test_a_killed_run_and_a_killed_spark_lose_nothing(settings: Settings, started, tmp_path: Path) -> None:
    live = Live(settings, started)
    child = live.start()
    live.drop(tmp_path, "1.csv", "1,Apple,false", "2,Pear,false")
    live.wait_for_fruits(2)
    wait_for(lambda: live.worker() is None, "the end of the first run", SECONDS)

    live.drop(tmp_path, "2.csv", "3,Plum,false", "4,Pear,true")
    os.kill(wait_for(live.worker, "a run", SECONDS), signal.SIGKILL)
    live.wait_for_fruits(3)

    live.drop(tmp_path, "3.csv", "5,Fig,false")
    (spark, *_) = java_below(child.process.pid)
    os.kill(spark, signal.SIGKILL)
    live.drop(tmp_path, "4.csv", "6,Kiwi,true")
    live.wait_for_fruits(5)
    assert live.rows("bronze.raw_fruits", "id") == [(f"{number}",) for number in range(1, 7)]
    fruits = [("Apple", 1), ("Fig", 5), ("Kiwi", 6), ("Pear", 4), ("Plum", 3)]
    assert live.rows("silver.fruits", "fruit", "id") == fruits
    wait_for(lambda: not list((settings.home / "inbox/fruits").iterdir()), "an empty inbox", SECONDS)
    assert "FAILURE" in live.statuses()


def test_each_row_is_there_once_whoever_ingests(settings: Settings, started, tmp_path: Path) -> None:
    """The sensor, two runs launched in the UI and a command go for the same fifty files at once."""
    live = Live(settings, started)
    live.start()
    for number in range(FILES):
        live.drop(tmp_path, f"{number}.csv", f"{number},Fruit {number},false", f"{number},Common,false")
    for _ in range(2):
        live.launch("ingest_fruits")
    command = started("ingest", "fruits")
    assert command.status() == 0, command.said
    live.wait_for_fruits(FILES + 1)
    wait_for(lambda: not list((settings.home / "inbox/fruits").iterdir()), "an empty inbox", SECONDS)
    live.wait_for_runs()
    assert set(live.statuses()) == {"SUCCESS"}
    assert len(live.statuses()) >= AT_LEAST
    landed = live.rows("bronze.raw_fruits", "_source_file", "_source_row")
    assert landed == sorted((f"{number}.csv", row) for number in range(FILES) for row in (1, 2))
    found = dict(live.rows("silver.fruits", "fruit", "id"))
    assert found.pop("Common") == FILES - 1, "the last file wins"
    assert found == {f"Fruit {number}": number for number in range(FILES)}


def test_files_that_land_in_a_bucket_are_ingested(aws_settings: Settings, started, tmp_path: Path) -> None:
    live = Live(aws_settings, started)
    live.start(LAKEHOUSE_DEPLOYMENT="aws", LAKEHOUSE_BUCKET="lake", AWS_ENDPOINT_URL=aws_settings.endpoint_url or "")
    live.drop(tmp_path, "1.csv", "1,Apple,false", "2,Pear,false")
    live.drop(tmp_path, "2.csv", "3,Plum,false")
    live.wait_for_fruits(3)
    assert live.rows("bronze.raw_fruits", "id", "_source_file") == [("1", "1.csv"), ("2", "1.csv"), ("3", "2.csv")]
    store = open_store(aws_settings)
    wait_for(lambda: len(store.objects("archive/fruits/")) == 2, "the archive", SECONDS)
    assert store.objects("inbox/fruits/") == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_hundred_files_and_kills_at_random(settings: Settings, started, tmp_path: Path, seed: int) -> None:
    """`silver.fruits` keeps the last value of each name, so that it proves the order too."""
    chance, live, last = random.Random(seed), Live(settings, started), {}
    child, kills = live.start(), 0
    for number in range(MANY):
        name = f"Fruit {chance.randrange(20)}"
        last[name] = number
        live.drop(tmp_path, f"{number:03}.csv", f"{number},{name},false")
        time.sleep(chance.random())
        victim = None
        if chance.random() < A_RUN:
            victim = live.worker()
        elif chance.random() < THE_SPARK:
            victim = next(iter(java_below(child.process.pid)), None)
        if victim is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            kills += 1
            time.sleep(1)
        assert child.is_alive
    wait_for(lambda: not list((settings.home / "inbox/fruits").iterdir()), "an empty inbox", 600)
    wait_for(lambda: dict(live.rows("silver.fruits", "fruit", "id")) == last, "the last value of each name", 600)
    assert live.rows("bronze.raw_fruits", "_source_file") == [(f"{number:03}.csv",) for number in range(MANY)]
    assert kills
