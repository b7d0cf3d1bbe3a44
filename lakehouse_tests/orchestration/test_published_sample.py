"""Some rows beside a materialization: shown where they can be read without Spark, and never what
fails a run.
"""

from pathlib import Path

import pytest

from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.run_result import AssetResult
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.frames import frame_of

NAME = "silver.words"


@pytest.fixture
def append(build, embedded_engine):
    """Append a row in a run of its own, to a table whose new files are of a format."""

    def run(word: str, file_format: str = "parquet") -> AssetResult:
        table = IcebergTable(
            NAME,
            "Words.",
            [Column("word", "string")],
            write=Append(once_by=()),
            file_format=file_format,
        )

        @iceberg_asset(table)
        def words():
            return frame_of(embedded_engine.spark, "word string", [(word,)])

        result = build(words)
        assert result.success, result.messages
        return result.asset(NAME)

    return run


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_rows_are_shown(append, file_format: str) -> None:
    shown = append("a", file_format)

    assert shown.metadata["sample"] == [{"word": "a"}]


def test_a_table_of_avro_is_published_without(append) -> None:
    shown = append("a", "avro")

    assert (shown.status, shown.metadata["dagster/row_count"]) == ("published", 1)
    assert "sample" not in shown.metadata


def test_a_table_of_which_a_file_is_missing_is_published_without(
    append, embedded_engine
) -> None:
    append("a")
    (task,) = embedded_engine.catalog.load(NAME).scan().plan_files()
    Path(task.file.file_path.removeprefix("file:")).unlink()

    shown = append("b")

    assert shown.status == "published"
    assert "sample" not in shown.metadata
