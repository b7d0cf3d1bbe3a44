"""`--format json` of what acts: the same as people are told, in one document."""

import pytest

from lakehouse.cli.output.record_output import check_record, ingest_record
from lakehouse.definitions import FEEDS
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.metadata_keys import RejectedReason
from lakehouse.orchestration.runs.run_result import AssetResult, CheckResult, RunResult

pytestmark = pytest.mark.unit


def test_a_check_has_its_figures():
    figures = {"failed_rows": 2, "total_rows": 10, "threshold": 0.0, "sample": [{"id": 1}]}
    found = check_record(
        CheckResult("silver.t", "not_null_id", False, "WARN", figures, "2 of 10 rows break it.")
    )
    assert (found["table"], found["check"], found["passed"], found["severity"]) == (
        "silver.t",
        "not_null_id",
        False,
        "WARN",
    )
    assert (found["failed_rows"], found["total_rows"], found["description"]) == (
        2,
        10,
        "2 of 10 rows break it.",
    )
    assert "sample" not in found


def test_an_ingest_has_its_files_tables_and_what_was_refused():
    feed = FEEDS["fruits"]
    landed = AssetResult(feed.table, "published", {"nr_rows": 3, "landed": [{"file": "a.csv"}]})
    merged = AssetResult(
        "silver.fruits",
        "published",
        {"dagster/row_count": 2, "iceberg/inserted_rows": 2, "newly_quarantined_rows": 1},
    )
    refused = RejectedReason("b.csv", "It has no header.", "rejected/fruits/b.csv")
    found = ingest_record(
        IngestResult(feed, (RunResult("r1", True, (landed, merged)),), refused=(refused,))
    )
    assert (found["feed"], found["success"], found["files"], found["rows"]) == (
        "fruits",
        False,
        ["a.csv"],
        3,
    )
    assert found["rejected"] == [
        {"file": "b.csv", "reason": "It has no header.", "kept_as": "rejected/fruits/b.csv"}
    ]
    assert [(one["table"], one["rows"], one["inserted_rows"]) for one in found["tables"]] == [
        (feed.table, None, None),
        ("silver.fruits", 2, 2),
    ]
    assert (found["quarantined_rows"], found["runs"]) == ({"silver.fruits": 1}, ["r1"])
