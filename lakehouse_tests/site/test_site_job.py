"""The sensor requests the site after runs, and the job makes it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from lakehouse.site import site_job
from lakehouse.site.site_job import JOB, SENSOR, site_definitions


@pytest.fixture
def instance():
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def evaluate_sensor(settings, source, instance, tmp_path):
    """Evaluate the sensor as of its cursor."""
    place = str(tmp_path / "docs")

    def evaluate(cursor: str | None = None, docs: str | None = place):
        definitions = site_definitions(source, lambda: replace(settings, docs=docs))
        sensor = definitions.get_repository_def().get_sensor_def(SENSOR)
        with dg.build_sensor_context(instance, cursor=cursor) as context:
            return sensor.evaluate_tick(context)

    return evaluate


def finish_run(instance, job_name="ingest"):
    run = create_run_for_test(instance, job_name=job_name, status=dg.DagsterRunStatus.STARTED)
    instance.report_run_failed(run)


def test_without_a_place_it_skips(evaluate_sensor):
    assert evaluate_sensor(docs=None).skip_message == "LAKEHOUSE_DOCS is not set."


def test_the_first_tick_requests_the_site(evaluate_sensor):
    tick = evaluate_sensor()

    assert len(tick.run_requests) == 1
    assert not evaluate_sensor(tick.cursor).run_requests


@pytest.mark.long
def test_a_run_of_another_job_requests_the_site(evaluate_sensor, instance, monkeypatch):
    monkeypatch.setattr(site_job, "_SETTLES", timedelta(0))
    cursor = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    finish_run(instance, JOB)
    assert not evaluate_sensor(cursor).run_requests

    finish_run(instance)
    assert len(evaluate_sensor(cursor).run_requests) == 1


@pytest.mark.long
def test_a_request_waits_for_the_metrics_of_a_run(evaluate_sensor, instance):
    cursor = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    finish_run(instance)

    assert not evaluate_sensor(cursor).run_requests


def test_the_site_is_requested_once_an_hour(evaluate_sensor):
    cursor = (datetime.now(UTC) - timedelta(minutes=61)).isoformat()

    assert len(evaluate_sensor(cursor).run_requests) == 1


def test_a_running_job_is_not_requested_again(evaluate_sensor, instance):
    create_run_for_test(instance, job_name=JOB, status=dg.DagsterRunStatus.STARTED)

    assert evaluate_sensor().skip_message == "The site is being made."


@pytest.mark.long
def test_the_job_makes_the_site(lake, source, instance, tmp_path):
    settings = replace(lake, docs=str(tmp_path / "docs"))
    job = site_definitions(source, lambda: settings).resolve_job_def(JOB)

    assert job.execute_in_process(instance=instance).success
    assert (tmp_path / "docs" / "index.html").is_file()
