"""Dagster carries a request to erase somebody on, from the call that made it to its proof."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from lakehouse.definitions import definitions
from lakehouse.orchestration.runs.erasure_runs import JOB, SENSOR
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.privacy.identity import Named
from lakehouse.privacy.requests import change_request, open_request, read_request
from lakehouse.privacy.sealed_values import is_sealed
from lakehouse_tests.assets.deliveries import DAYS, RAW, SUMMARY, line, put
from lakehouse_tests.assets.pipeline import Pipeline

ANNA, BEN = 7001234567, 8001234567
ADDRESS = "anna.example@example.org"


@pytest.mark.long
def test_a_request_that_was_left_is_carried_on_until_it_is_proved(bnpl: Pipeline) -> None:
    of_anna = line(1, DAYS[0], customer=ANNA).replace("a@example.com", ADDRESS)
    of_ben = [line(2 + at, day, customer=BEN) for at, day in enumerate(DAYS[:2])]
    assert put(bnpl, "first.csv", of_anna, *of_ben).success
    lost = lose_a_write(bnpl, of_anna)
    named = [Named("customer_id", str(ANNA))]
    open_request(bnpl.settings, "R-1", named, why="", by="me")

    carry_on(bnpl)

    assert read_request(bnpl.settings, "R-1").state == "pending_physical"
    assert bnpl.rows(f"SELECT count(*) FROM {RAW} WHERE customer_id = '{ANNA}'") == [(0,)]
    # It has no subject: the day was computed anew, in a run beside that of the job.
    assert bnpl.rows(f"SELECT sum(transactions) FROM {SUMMARY}") == [(2,)]
    assert "is due" in str(ask(bnpl))

    let_a_day_pass(bnpl, lost)
    carry_on(bnpl)

    assert read_request(bnpl.settings, "R-1").state == "verified"
    assert not is_sealed(bnpl.settings, "R-1")
    assert bnpl.rows(f"SELECT sum(transactions) FROM {SUMMARY}") == [(2,)]
    files = [file for file in bnpl.settings.home.rglob("*") if file.is_file()]
    assert not [file for file in files if ADDRESS.encode() in file.read_bytes()]
    assert "is due" in str(ask(bnpl))


def ask(pipeline: Pipeline) -> dg.RunRequest | str:
    project = definitions(lambda: pipeline.settings)
    repository = project.get_repository_def()
    with open_instance(pipeline.settings) as instance:
        context = dg.build_sensor_context(instance=instance, repository_def=repository)
        found = project.resolve_sensor_def(SENSOR).evaluate_tick(context)
    (asked,) = found.run_requests or [str(found.skip_message)]
    return asked


def carry_on(pipeline: Pipeline) -> None:
    asked = ask(pipeline)
    assert isinstance(asked, dg.RunRequest), asked
    job = definitions(lambda: pipeline.settings).resolve_job_def(JOB)
    with open_instance(pipeline.settings) as instance:
        result = job.execute_in_process(asked.run_config, instance=instance, tags=asked.tags)
    assert result.success


def lose_a_write(pipeline: Pipeline, text: str) -> Path:
    location = pipeline.engine.catalog.load(RAW).location().removeprefix("file://")
    lost = Path(location) / "data" / "lost.csv"
    lost.write_text(text)
    return lost


def let_a_day_pass(pipeline: Pipeline, lost: Path) -> None:
    before = datetime.now(UTC) - timedelta(days=2)
    os.utime(lost, (before.timestamp(),) * 2)
    change_request(
        pipeline.settings, "R-1", lambda request: replace(request, physical_due_at=before)
    )
