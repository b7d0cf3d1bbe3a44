"""What became of an ingest, and how far it is, in lines for people."""

import pytest

from lakehouse.cli.output.ingest_report import describe_progress, describe_tables, summarize
from lakehouse.iceberg.metadata.write_result import Outcome, Quarantined, RuleResult
from lakehouse.iceberg.read.rows_outside_partitions import has_partition
from lakehouse.iceberg.rules.refused_share import refused_share
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.metadata_keys import QuarantineMetadata, RejectedReason
from lakehouse.orchestration.run_progress import TableProgress
from lakehouse.orchestration.run_result import AssetResult, RunResult
from lakehouse.orchestration.written_metadata import refused_rows
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit


def refusing(**counts: object) -> AssetResult:
    """A run of one table that refused rows."""
    metadata = QuarantineMetadata(**counts).to_metadata()  # type: ignore[arg-type]
    return AssetResult("silver.sales", "published", metadata)


def test_a_row_that_each_run_refuses_counts_once() -> None:
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
        "silver.sales: 6 of 102 rows were refused and quarantined (5.9 %): castable_n 4,"
        " has_partition 2; "
    )


@pytest.mark.parametrize(
    ("left_out", "rows"),
    [(0, 200), (190, 10), (40, 160)],
    ids=["each run evaluates them", "no run reads them", "some of both"],
)
def test_rows_outside_of_partitions_are_part_of_one_share(left_out: int, rows: int) -> None:
    """The write evaluated `rows`, and those left out besides them."""
    table = IcebergTable(
        "silver.sales", "", [Column("day", "date")], Overwrite(), rules=[not_null("day")]
    )
    split = RuleResult(refused_share(table), 0, rows, value=(190 - left_out) / rows)
    broken = RuleResult(table.rules[0], 190 - left_out, rows)
    quarantined = Quarantined("silver.sales_quarantine", 190, 190, 1, 190, left_out)
    outside = RuleResult(has_partition(table), left_out, 200)
    results = (split, broken, outside)
    outcome = Outcome("silver.sales", "w", 1, results, quarantined=quarantined)

    said = refusing(**vars(refused_rows(table, outcome)))
    assert (
        "190 of 200 rows were refused and quarantined (95.0 %)" in describe_tables([said])[-1]
    )
    both_runs = describe_tables([said, said])[-1]
    assert "190 of 210 rows were refused and quarantined (90.5 %)" in both_runs


def test_a_file_that_was_rejected_was_a_new_one() -> None:
    rejected = RejectedReason("a.csv", "no header.", "rejected/fruits/a.csv")
    result = IngestResult(Feed("fruits", ["id"], "bronze.fruits"), refused=(rejected,))

    assert summarize(result)[0] == "Feed fruits: 1 file rejected, and no other new one"


def test_files_that_could_not_land_are_not_said_to_be_none() -> None:
    failed = AssetResult("bronze.fruits", "failed", {}, "The Spark server ended.")
    run = RunResult("0a1b", success=False, assets=(failed,))
    result = IngestResult(Feed("fruits", ["id"], "bronze.fruits"), (run,))

    assert summarize(result) == [
        "Feed fruits: nothing landed; what waits in inbox/fruits/ stays"
    ]


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (TableProgress("gold.all"), "gold.all"),
        (TableProgress("silver.a", 0, 295), "silver.a, 0 of 295 partitions"),
        (
            TableProgress("silver.a", 40, 295, 1234),
            "silver.a, 40 of 295 partitions, 1,234 rows",
        ),
        (
            TableProgress("silver.a", 1, 9, 1),
            "silver.a, 1 of 9 partitions, 1 row",
        ),
    ],
)
def test_progress_is_said_in_one_line(progress: TableProgress, said: str) -> None:
    assert describe_progress(progress) == said
