"""A job tells of each write that it begins, and knows which ones never ended on its host."""

from types import SimpleNamespace

import pytest

from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.orchestration.table_jobs.job_answer import begun_message, begun_writes
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.privacy.gone import GoneList
from lakehouse.table_job import _record_interrupted, _ReportStarted
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit
TABLE = IcebergTable("gold.figures", "Figures.", [Column("id", "bigint")], write=Overwrite())


def test_a_begun_write_is_told():
    told: list[object] = ["another message"]
    pipes = SimpleNamespace(report_custom_message=told.append)
    _ReportStarted(pipes).begun(BegunWrite(TABLE, "abc"))

    assert told[1] == begun_message("gold.figures", "abc")
    assert begun_writes(told) == [("gold.figures", "abc")]


def test_a_job_takes_the_dead_writes_of_its_host_for_dead(aws_settings):
    engine = Engine(Catalog.of(aws_settings), lambda: None, aws_settings.lock_dir, b"key")
    gone, dead = GoneList("1", None, {}), {"gold.figures": ["abc"]}
    _record_interrupted(
        engine, JobRequest.of("gold.figures", Run(), aws_settings, engine, gone, dead)
    )

    with table_lock(engine, "gold.figures") as log:
        assert log.unfinished() == ["abc"]
