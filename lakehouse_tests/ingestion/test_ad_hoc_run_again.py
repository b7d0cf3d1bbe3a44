"""A run of files that a person named, executed again by the UI, which gives it all tags of the run
before.
"""

from typing import TYPE_CHECKING

import pytest

from lakehouse.definitions import FEEDS, TABLES, definitions
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration.instance import open_instance

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.settings import Settings


@pytest.mark.long
def test_it_does_not_pass_for_an_ingest_of_files_that_are_gone(
    spark: "SparkSession", settings: "Settings", tmp_path: "Path"
) -> None:
    named = tmp_path / "named.csv"
    named.write_text("id,fruit,berry\n1,Apple,false\n", encoding="utf-8")
    first, *_ = ingest(definitions, TABLES, settings, FEEDS["fruits"], path=str(named)).runs
    job = definitions(lambda: settings).resolve_job_def("ingest_fruits")
    with open_instance(settings) as instance:
        tags = {**instance.get_run_by_id(first.run_id).tags}
        again = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)

    assert not again.success
    (failed,) = again.filter_events(lambda event: event.is_step_failure)
    assert failed.step_key == "bronze__raw_fruits"
    assert f"lakehouse ingest fruits --path {named}" in str(failed.step_failure_data.error)
