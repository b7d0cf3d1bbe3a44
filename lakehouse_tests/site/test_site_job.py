"""The sensor asks for the site after runs where a place is set, and the job makes it."""

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
def ask(settings, source, instance, tmp_path):
    """Evaluate the sensor as of its cursor."""
    place = str(tmp_path / "docs")

    def evaluate(cursor: str | None = None, docs: str | None = place):
        definitions = site_definitions(source, lambda: replace(settings, docs=docs))
        sensor = definitions.get_repository_def().get_sensor_def(SENSOR)
        with dg.build_sensor_context(instance, cursor=cursor) as context:
            return sensor.evaluate_tick(context)

    return evaluate


def ended(instance, job_name="ingest"):
    run = create_run_for_test(instance, job_name=job_name, status=dg.DagsterRunStatus.STARTED)
    instance.report_run_failed(run)


def test_without_a_place_it_skips(ask):
    assert ask(docs=None).skip_message == "LAKEHOUSE_DOCS is not set."


def test_at_first_it_asks_once(ask):
    asked = ask()

    assert len(asked.run_requests) == 1
    assert not ask(asked.cursor).run_requests


@pytest.mark.long
def test_it_asks_after_a_run_and_not_after_its_own(ask, instance, monkeypatch):
    monkeypatch.setattr(site_job, "_SETTLES", timedelta(0))
    cursor = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    ended(instance, JOB)
    assert not ask(cursor).run_requests

    ended(instance)
    assert len(ask(cursor).run_requests) == 1


@pytest.mark.long
def test_a_run_is_waited_with_until_its_metrics_are_recorded(ask, instance):
    cursor = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    ended(instance)

    assert not ask(cursor).run_requests


def test_it_asks_once_an_hour_since_tables_get_late_by_themselves(ask):
    cursor = (datetime.now(UTC) - timedelta(minutes=61)).isoformat()

    assert len(ask(cursor).run_requests) == 1


def test_it_waits_for_the_one_that_goes_on(ask, instance):
    create_run_for_test(instance, job_name=JOB, status=dg.DagsterRunStatus.STARTED)

    assert ask().skip_message == "The site is being made."


@pytest.mark.long
def test_the_job_makes_the_site(lake, source, instance, tmp_path):
    settings = replace(lake, docs=str(tmp_path / "docs"))
    job = site_definitions(source, lambda: settings).resolve_job_def(JOB)

    assert job.execute_in_process(instance=instance).success
    assert (tmp_path / "docs" / "index.html").is_file()
