"""What became of an ingest, and how far it is, in lines for people."""

import pytest

from lakehouse.cli.output.ingest_report import describe_progress, describe_tables, summarize
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.metadata_keys import (
    LandedFile,
    LandingMetadata,
    QuarantineMetadata,
    RejectedReason,
)
from lakehouse.orchestration.runs.run_progress import TableProgress
from lakehouse.orchestration.runs.run_result import AssetResult, RunResult, Status
from lakehouse.tables.feed import Feed

pytestmark = pytest.mark.unit


def refusing(**counts: object) -> AssetResult:
    """A run of one table that refused rows."""
    metadata = QuarantineMetadata(**counts).to_metadata()  # type: ignore[arg-type]
    return AssetResult("silver.sales", "published", metadata)


def test_a_row_that_each_run_quarantines_counts_once() -> None:
    first = refusing(
        rows=5,
        new_rows=5,
        outside_rows=2,
        evaluated_rows=60,
        by_rule={"has_partition": 2, "castable_n": 3},
    )
    second = refusing(
        rows=3,
        new_rows=1,
        outside_rows=2,
        evaluated_rows=40,
        by_rule={"has_partition": 2, "castable_n": 1},
    )
    assert describe_tables([first, second])[-1].startswith(
        "silver.sales: 6 of 102 rows were quarantined (5.9 %): castable_n 4, has_partition 2; "
    )


def test_a_file_that_was_rejected_was_a_new_one() -> None:
    rejected = RejectedReason("a.csv", "no header.", "rejected/fruits/a.csv")
    result = IngestResult(Feed("fruits", ["id"], "bronze.fruits"), unreported=(rejected,))

    assert summarize(result)[0] == "Feed fruits: 1 file rejected, and no other new one"


@pytest.mark.parametrize(
    ("rows", "status", "said"),
    [
        (3, "unchanged", "1 file (a.csv), nr_rows 0, all of it ingested before"),
        (0, "unchanged", "1 file (a.csv), nr_rows 0"),
        (3, "failed", "nothing landed; the files stay where they are"),
    ],
    ids=["again", "only a header", "blocked"],
)
def test_a_file_without_new_rows_is_explained(rows: int, status: Status, said: str) -> None:
    landed = LandingMetadata(landed=(LandedFile("a.csv", rows, "sha"),)).to_metadata()
    run = RunResult("run", status != "failed", (AssetResult("bronze.fruits", status, landed),))
    result = IngestResult(Feed("fruits", ["id"], "bronze.fruits"), (run,))

    assert summarize(result)[0] == f"Feed fruits: {said}"


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (TableProgress("gold.all"), "gold.all"),
        (TableProgress("silver.a", 0, 295), "silver.a, 0 of 295 partitions"),
        (
            TableProgress("silver.a", 40, 295, 1234),
            "silver.a, 40 of 295 partitions, 1,234 rows",
        ),
        (TableProgress("silver.a", 1, 9, 1), "silver.a, 1 of 9 partitions, 1 row"),
    ],
)
def test_progress_is_said_in_one_line(progress: TableProgress, said: str) -> None:
    assert describe_progress(progress) == said
