"""What a job is asked arrives as it was asked."""

import json
from datetime import UTC, datetime

import pytest

from lakehouse.errors import JobFailed
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import ErasedIds
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.orchestration.table_jobs.job_request import JobRequest

pytestmark = pytest.mark.unit
KEY, PERSON = b"\x00\xff secret", bytes(range(32))
ERASED_AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.fixture
def job_request(aws_settings) -> JobRequest:
    engine = Engine(Catalog.of(aws_settings), lambda: None, aws_settings.lock_dir, KEY)
    run = Run("a run", Partitions(("2026-01-01",)), full_recompute=False, code_version="abc")
    gone = ErasedIds(KEY, {PERSON: ERASED_AT})
    return JobRequest.of("gold.totals", run, aws_settings, engine, gone)


def test_what_is_asked_is_the_same_on_the_other_side(job_request):
    read = JobRequest.from_json(json.loads(json.dumps(job_request.to_json())))

    assert read.table == "gold.totals"
    assert list(read.partitions) == ["2026-01-01"]
    run = Run(**read.run)
    assert (run.run_id, run.full_recompute, run.code_version) == ("a run", False, "abc")
    assert bytes.fromhex(read.masking_key) == bytes.fromhex(read.erasure_key or "") == KEY
    assert read.erased_at == {PERSON: ERASED_AT}
    assert read.settings["bucket"] == "lake"


def test_keys_are_not_shown(job_request):
    assert KEY.hex() not in repr(job_request)
    assert PERSON.hex() not in repr(job_request)


def test_who_asks_otherwise_is_told_what_is_expected():
    with pytest.raises(JobFailed, match="requested with shop; expected table, run, partitions"):
        JobRequest.from_json({"shop": 1})
