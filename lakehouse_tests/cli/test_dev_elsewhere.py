"""`lakehouse dev` on a bucket, and with random kills; each test starts its own."""

import contextlib
import os
import random
import signal
import time

import pytest

from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse_tests.cli.commands import java_below
from lakehouse_tests.cli.live import Live
from lakehouse_tests.processes import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(1800)]

MANY, A_RUN, THE_SPARK = 200, 0.05, 0.01


def test_files_that_land_in_a_bucket_are_ingested(aws_settings: Settings) -> None:
    with Live(aws_settings) as live:
        address = aws_settings.endpoint_url or ""
        place = {"LAKEHOUSE_DEPLOYMENT": "aws", "LAKEHOUSE_BUCKET": "lake"}
        live.start(by_a_script=True, AWS_ENDPOINT_URL=address, **place)
        live.drop("1.csv", "1,Apple,false", "2,Pear,false")
        live.drop("2.csv", "3,Plum,false")
        live.wait_for_fruits("Apple", "Pear", "Plum")
        assert live.rows("bronze.raw_fruits", "id", "_source_file") == [
            ("1", "1.csv"),
            ("2", "1.csv"),
            ("3", "2.csv"),
        ]
        live.wait_for_an_empty_inbox()
        assert len(open_store(aws_settings).objects("archive/fruits/")) == 2
        # Less than the timeouts for Dagster and Spark to exit.
        assert live.end(signal.SIGTERM, seconds=25) == 130, live.dev.said


def test_two_hundred_files_and_kills_at_random(settings: Settings) -> None:
    """`silver.fruits` keeps the last value of each name, so that it proves the order too."""
    chance, last, kills = random.Random(1), {}, 0
    with Live(settings) as live:
        child = live.start()
        for number in range(MANY):
            name = f"Fruit {chance.randrange(20)}"
            last[name] = number
            live.drop(f"{number:03}.csv", f"{number},{name},false")
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
        live.wait_for_an_empty_inbox()
        wait_for(
            lambda: dict(live.rows("silver.fruits", "fruit", "id")) == last,
            "the last value of each name",
            600,
        )
        assert live.rows("bronze.raw_fruits", "_source_file") == [
            (f"{number:03}.csv",) for number in range(MANY)
        ]
    assert kills
