"""The records of a run's outcome: what is written to Dagster's metadata is read back, of runs of
the version before too, and one module alone names the keys.
"""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import dagster as dg
import pytest

import lakehouse
from lakehouse.orchestration.metadata_keys import (
    CheckMetadata,
    DeclaredMetadata,
    LandedFile,
    LandingMetadata,
    MetadataRecord,
    OverrideMetadata,
    QuarantineMetadata,
    RefusalMetadata,
    RejectedReason,
    WriteMetadata,
    metric_values,
)

pytestmark = pytest.mark.unit

_BIG = 9_007_199_254_740_993
RECORDS = [
    DeclaredMetadata(
        column_schema=dg.TableSchema([dg.TableColumn("id", "bigint")]), write_mode="Merge"
    ),
    WriteMetadata(
        row_count=0,
        snapshot_id=_BIG,
        nr_rows=3,
        operation="append",
        inputs={"bronze.raw": {"rows": 3}},
        partitions=("2026-11-01", "2026-11-02"),
        sample=({"z": 1, "a": "x"},),
    ),
    QuarantineMetadata(rows=2, new_rows=0, table="silver.q", by_rule={"positive": 2}),
    RefusalMetadata(branch="", failed_rules="positive"),
    OverrideMetadata(by="ann", why="it is right", run_id="r1"),
    LandingMetadata(
        files=1,
        landed=(LandedFile("a.csv", 3, "ab"),),
        rejected=(RejectedReason("b.csv", "It has no header.", "rejected/b.csv"),),
        warnings=("A new column.",),
        left_out_rows=2,
    ),
    CheckMetadata(
        failed_rows=1, total_rows=4, threshold=0.0, evaluated="candidate", snapshot_id=_BIG
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_read_back_from_what_dagster_keeps(record):
    kept = dg.AssetMaterialization("t", metadata=record.to_metadata()).metadata
    stored = dg.deserialize_value(
        dg.serialize_value(dg.AssetMaterialization("t", metadata=kept))
    )
    assert type(record).from_metadata(stored.metadata) == record


def test_columns_of_a_sample_keep_their_order():
    stored = WriteMetadata(sample=({"z": 1, "a": 2},)).to_metadata()
    assert list(WriteMetadata.from_metadata(stored).sample[0]) == ["z", "a"]


def test_a_refusal_of_the_version_before_says_that_there_was_no_snapshot_as_text():
    stored = {
        "iceberg/refused_branch": dg.MetadataValue.text("refused_1"),
        "iceberg/refused_snapshot_id": dg.MetadataValue.text("None"),
        "iceberg/snapshot_id": dg.MetadataValue.text("None"),
        "failed_rules": dg.MetadataValue.text("positive"),
    }
    assert RefusalMetadata.from_metadata(stored) == RefusalMetadata(
        branch="refused_1", failed_rules="positive"
    )


def test_a_key_that_another_asset_uses_for_something_else_is_read_as_absent():
    stored = {
        "sample": dg.MetadataValue.text("of rocks"),
        "failed_rows": dg.MetadataValue.text("a few"),
        "partitions": dg.MetadataValue.int(4),
        "snapshot_id": dg.MetadataValue.int(7),
    }
    assert CheckMetadata.from_metadata(stored) == CheckMetadata()


def test_numbers_of_a_write_that_are_metrics_keep_their_names():
    stored = {"scanned_files": 2, "null_fraction.id": 0.5, "iceberg/added_rows": 9}
    assert metric_values(stored) == {"scanned_files": 2, "null_fraction.id": 0.5}


_HOME = Path(lakehouse.__file__).parent
_SHARED = {
    # The fields of `--format json`, which have names of their own.
    "cli/output/records.py",
    "cli/status.py",
    "cli/table_status.py",
    "cli/history.py",
    "cli/files.py",
    # Fields of records, which the builder hands on by name.
    "orchestration/written_metadata.py",
    # The fields of a result, as a job tells them.
    "orchestration/table_jobs/job_answer.py",
}
_WORDS = {"files", "value", "low", "high", "note", "table", "sample", "branch", "snapshot_id"}
_WORDS |= {"partitions", "predicate", "landed", "rejected", "warnings", "evaluated", "archived"}
_WORDS |= {"unsettled", "nr_rows", "measured_rows", "warn_above"}
"""Keys that are words of other things too: these count only beside the word metadata."""


def keys() -> set[str]:
    return {
        entry.metadata["key"]
        for record in MetadataRecord.__subclasses__()
        for entry in fields(record)
    }


def named(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that a module looks up in metadata, and those of which none is a word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value not in _WORDS:
                yield node.value
        elif isinstance(node, ast.Subscript) and "metadata" in ast.unparse(node.value):
            yield ast.unparse(node.slice).strip("'")
        elif isinstance(node, ast.Call) and "metadata.get" in ast.unparse(node.func):
            yield ast.unparse(node.args[0]).strip("'")


@pytest.mark.scenario
def test_one_module_names_the_keys():
    known = keys()
    naming = {}
    for file in _HOME.rglob("*.py"):
        module = file.relative_to(_HOME).as_posix()
        if module == "orchestration/metadata_keys.py":
            continue
        texts = set(named(ast.parse(file.read_text(encoding="utf-8")))) & known
        if module in _SHARED:
            texts = {text for text in texts if "/" in text}
        if texts:
            naming[module] = texts
    assert naming == {}
