"""What leaves Spark, or a scan of PyIceberg, for the memory of the driver: each place has its
reason and its bound.

Rows of a table are never collected as a whole: they would fit into one process as long as the
table is small.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakehouse
from lakehouse.iceberg.frames.frames import collect

pytestmark = pytest.mark.unit

PACKAGE = Path(lakehouse.__file__).parent
COLLECTING = {
    *("collect", "toArrow", "toPandas", "toLocalIterator"),
    *("to_arrow", "to_pandas", "to_polars", "to_duckdb"),
}
WHERE_CALLED = {"first", "head", "tail", "take"}
"""Names of methods that collect rows, and of much else."""

ONE_ROW = "one row of aggregates, or of what a procedure or statement did"
PER_RULE = "one row for each declared rule"
SAMPLES = "a sample: at most 20 rows of a rule, found among a bounded number of rows"
OUTPUT = "what a person asked to see; Spark refuses more than spark.driver.maxResultSize, 1 GB by itself"
FEW_OR_OTHERWISE = (
    "at most a stated number; of more, what is looked for is looked for another way"
)
PARTITIONS = (
    "at most 100,000 values; of more, all partitions are meant, which are refused by name above"
)
OF_A_TEST = "the few rows that a test or a trial was given"
OWN_LOG = "rows that the lakehouse wrote of itself in a window of days, a few for each run"

COLLECTED = {
    # A query's output.
    "cli/output/cell_values.py:masked_cells.collect": OUTPUT,
    "cli/tables/sql.py:_rendered.collect": OUTPUT,
    "iceberg/diff/row_diff.py:count_by.collect": f"{OUTPUT}: a row for each value of a column",
    "iceberg/diff/row_diff.py:sample_rows.collect": SAMPLES,
    "iceberg/copy/copy_table.py:row_checksum.to_pandas": "one batch of a stream",
    "orchestration/io_manager.py:to_pandas.toPandas": f"{OUTPUT}: a function takes pandas",
    "orchestration/io_manager.py:to_pandas.toArrow": f"{OUTPUT}: a function takes pandas",
    "orchestration/io_manager.py:to_pandas.to_pandas": "the same rows once more",
    "iceberg/frames/frames.py:collect.collect": "for those who call it, named here too",
    "iceberg/frames/frames.py:arrow_to_spark.to_pandas": "rows that the driver has already",
    "testing/table_fixture.py:_plain_rows.collect": OF_A_TEST,
    "privacy/suppressed_people.py:_check_audited.to_arrow": OWN_LOG,
    "cli/project/demo.py:_last_week.to_arrow": "the daily summary of the sample: a row a day and currency",
    # Counts.
    "iceberg/commit/branch.py:fast_forward.collect": ONE_ROW,
    "iceberg/diff/row_diff.py:_check_snapshot.collect": ONE_ROW,
    "iceberg/diff/row_diff.py:count_changes.collect": "a row for each of four kinds of change",
    "iceberg/read/stale_partitions.py:_look_up_affected.first": ONE_ROW,
    "iceberg/rules/audit.py:count.first": ONE_ROW,
    "iceberg/rules/audit.py:_count_lookups.collect": PER_RULE,
    "iceberg/rules/reconciliation.py:_values.collect": PER_RULE,
    "iceberg/upkeep/rewrite_procedures.py:call_procedure.collect": (
        "one row, or of orphans a path for each, in a location that the driver lists itself"
    ),
    "quality/row_accounting.py:_count.collect": "a row for each outcome",
    "quality/source_rows_check.py:count_places.collect": "a row for each place",
    "quality/source_rows_check.py:_sums.first": ONE_ROW,
    "spark/spark_session.py:collect_garbage.collect": ONE_ROW,
    "spark/connect_server.py:iceberg_version.collect": ONE_ROW,
    "cli/project/doctor_checks.py:_read.collect": "one row, staged to see whether a server reads it",
    "ingestion/staging/executor_reading.py:_outcomes.collect": (
        "a line for each file of an ingest, which this process has listed already"
    ),
    # Samples.
    "iceberg/rules/failing_row_samples.py:_collected.collect": SAMPLES,
    "iceberg/copy/moved_files.py:_moved_parquet.take": (
        "one file of position deletes, which names a file and a number for each"
    ),
    # Sets of keys.
    "iceberg/erasure/erase_again.py:erase_again.collect": (
        "identifiers of people who were erased, all of whom this process holds already"
    ),
    "iceberg/read/stale_partitions.py:_collect.collect": PARTITIONS,
    "iceberg/read/version_keys.py:few_keys.collect": FEW_OR_OTHERWISE,
    "iceberg/write/append_or_overwrite.py:_landed.collect": (
        "names and hashes among those of the files that one ingest brings, which it holds already"
    ),
    "iceberg/write/merge_rows.py:_source_stats.collect": FEW_OR_OTHERWISE,
    "iceberg/write/row_versions.py:_partitions_of.collect": FEW_OR_OTHERWISE,
    "ingestion/delivery_decisions.py:_landed.collect": "a row for each content of one name",
    "quality/source_rows_check.py:_of_their_files.collect": FEW_OR_OTHERWISE,
    "quality/source_rows_check.py:_sums_of_files.collect": FEW_OR_OTHERWISE,
    # By PyIceberg.
    "iceberg/write/append_without_spark.py:has_run.to_arrow": "at most one row",
    "cli/tables/read_table_status.py:failed_shares.to_arrow": OWN_LOG,
    "upkeep/upkeep_records.py:past_upkeep.to_arrow": OWN_LOG,
    "quality/metrics/anomaly_check.py:recent_metrics.to_arrow": OWN_LOG,
    "privacy/audit_chain.py:verify_chain.to_arrow": "a few rows for each request of a person",
    "privacy/audit_chain.py:_head.to_arrow": "two values for each request of a person",
}
OTHER_METHODS = {
    # Methods of these names that read no rows.
    "iceberg/erasure/commit_files.py:_summary.collect": "of the totals of a snapshot's summary",
    "iceberg/erasure/find_rows.py:read_file.take": "of the rows of one file that this holds",
    "iceberg/erasure/erasure_commits.py:erasure_properties.head": "of a history",
    "iceberg/metadata/snapshots.py:main.head": "of a history",
    "iceberg/read/quarantined_rows.py:_breaking.take": "of rows that are there",
    "iceberg/read/quarantined_rows.py:_per_rule.take": "of rows that are there",
    "iceberg/write/stage_statements.py:_commit.head": "of a history",
    "iceberg/write/write_attempt.py:evaluate_prepared.head": "of a history",
    "iceberg/write/write_audit_publish.py:_fence.head": "of a history",
    "upkeep/compaction.py:plan_compaction.take": "of a budget",
    "orchestration/warm_runs/run_server.py:preload.collect": "of garbage",
    "privacy/personal_export.py:_rows.take": "of the rows of a person",
    "sample_data": "makes rows, and reads none",
    "iceberg/write/append_or_overwrite.py:_added.head": "of a history",
    "iceberg/write/append_or_overwrite.py:_audited.head": "of a history",
    "iceberg/write/write_attempt.py:based_on_head.head": "of a history",
    "iceberg/write/write_attempt.py:head.head": "of a history",
}


def collecting_calls() -> set[str]:
    return {
        f"{source.relative_to(PACKAGE)}:{call}"
        for source in sorted(PACKAGE.rglob("*.py"))
        if source.relative_to(PACKAGE).parts[0] not in OTHER_METHODS
        for call in calls_in(ast.parse(source.read_text(encoding="utf-8")))
    }


def calls_in(node: ast.AST, function: str = "") -> Iterator[str]:
    """Yield each collecting method as `function.method`, also where it is handed on."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Attribute) and child.attr in COLLECTING:
            yield f"{function}.{child.attr}"
        called = child.func if isinstance(child, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in WHERE_CALLED:
            yield f"{function}.{called.attr}"
        if isinstance(called, ast.Name) and called.id == collect.__name__:
            yield f"{function}.{called.id}"
        yield from calls_in(child, child.name if is_function else function)


@pytest.mark.scenario
def test_each_place_that_collects_rows_has_a_bound():
    known = (COLLECTED | OTHER_METHODS).keys() - {"sample_data"}

    assert collecting_calls() - known == set(), (
        "Leave the rows with Spark, or state here why they are few, and what happens with more."
    )
    assert known - collecting_calls() == set(), "They are there no more."
