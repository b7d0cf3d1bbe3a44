"""A data file is written again as it was written before."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.rewritten_file import rewrite_without
from lakehouse_tests.iceberg.erasure.people import ORDERS, fill
from lakehouse_tests.iceberg.upkeep.tables import local_path

pytestmark = pytest.mark.unit


def _with_dictionary(path: Path) -> set[str]:
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {
        column.path_in_schema
        for column in columns
        if any("DICTIONARY" in encoding for encoding in column.encodings)
    }


def test_only_columns_that_had_a_dictionary_get_one(engine: Engine) -> None:
    rows = [(number, 7, "anna@example.org", "gift", None) for number in range(100)]
    fill(engine, ORDERS, rows)
    loaded = engine.catalog.load(ORDERS.name)
    [task] = loaded.scan().plan_files()
    path = local_path(task.file.file_path)
    pq.write_table(pq.read_table(path), path, use_dictionary=["note"])

    written = rewrite_without(loaded, task.file, pa.array([3]))

    assert written.record_count == 99
    assert _with_dictionary(local_path(written.file_path)) == {"note"}
