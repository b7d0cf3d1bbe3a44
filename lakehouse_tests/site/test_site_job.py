"""The schedule requests the site, and the job makes it."""

from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from lakehouse.site.site_job import JOB, SCHEDULE, site_definitions


@pytest.fixture
def instance():
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def evaluate_schedule(settings, source, instance, tmp_path):
    """Evaluate the schedule once."""
    place = str(tmp_path / "docs")

    def evaluate(docs: str | None = place):
        definitions = site_definitions(source, lambda: replace(settings, docs=docs))
        schedule = definitions.get_repository_def().get_schedule_def(SCHEDULE)
        with dg.build_schedule_context(instance) as context:
            return schedule.evaluate_tick(context)

    return evaluate


def test_without_a_place_it_skips(evaluate_schedule):
    assert evaluate_schedule(docs=None).skip_message == "LAKEHOUSE_DOCS is not set."


def test_a_running_job_is_not_requested_again(evaluate_schedule, instance):
    assert len(evaluate_schedule().run_requests) == 1

    create_run_for_test(instance, job_name=JOB, status=dg.DagsterRunStatus.STARTED)
    assert evaluate_schedule().skip_message == "The site is being made."


@pytest.mark.long
def test_the_job_makes_the_site(lake, source, instance, tmp_path):
    settings = replace(lake, docs=str(tmp_path / "docs"))
    job = site_definitions(source, lambda: settings).resolve_job_def(JOB)

    assert job.execute_in_process(instance=instance).success
    assert (tmp_path / "docs" / "index.html").is_file()
