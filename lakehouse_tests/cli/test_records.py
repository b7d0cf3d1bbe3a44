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
    result = CheckResult("silver.t", "not_null_id", False, "WARN", figures, "2 of 10 rows.")
    record = check_record(result)
    expected = {
        "table": "silver.t",
        "check": "not_null_id",
        "passed": False,
        "severity": "WARN",
        "failed_rows": 2,
        "total_rows": 10,
        "description": "2 of 10 rows.",
    }
    assert expected.items() <= record.items()
    assert "sample" not in record


def test_an_ingest_has_its_files_tables_and_what_was_rejected():
    feed = FEEDS["fruits"]
    landed = AssetResult(feed.table, "published", {"nr_rows": 3, "landed": [{"file": "a.csv"}]})
    written = {"dagster/row_count": 2, "iceberg/inserted_rows": 2, "newly_quarantined_rows": 1}
    merged = AssetResult("silver.fruits", "published", written)
    reason = RejectedReason("b.csv", "It has no header.", "rejected/fruits/b.csv")
    runs = (RunResult("r1", True, (landed, merged)),)
    record = ingest_record(IngestResult(feed, runs, unreported=(reason,)))
    expected = {
        "feed": "fruits",
        "success": False,
        "files": ["a.csv"],
        "rows": 3,
        "rejected": [
            {"file": "b.csv", "reason": "It has no header.", "kept_as": reason.kept_as}
        ],
        "quarantined_rows": {"silver.fruits": 1},
        "runs": ["r1"],
    }
    assert {name: record[name] for name in expected} == expected
    assert [(one["table"], one["rows"], one["inserted_rows"]) for one in record["tables"]] == [
        (feed.table, None, None),
        ("silver.fruits", 2, 2),
    ]
