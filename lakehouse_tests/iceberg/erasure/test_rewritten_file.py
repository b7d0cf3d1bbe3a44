"""A data file is written again as it was written before."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.rewritten_file import _METRICS, rewrite_without
from lakehouse.tables.table import Column
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


@pytest.mark.parametrize("renames", [False, True])
def test_a_personal_column_has_no_bounds_under_its_name_in_the_file(
    engine: Engine, renames: bool
) -> None:
    """Iceberg escapes names in files, and files retain former ones."""
    columns = [Column("id", "bigint"), Column("E-Mail", "string", personal=True)]
    table = replace(ORDERS, columns=columns, subject=None)
    fill(engine, table, [(number, "anna@example.org") for number in range(3)])
    loaded = engine.catalog.load(table.name)
    if renames:
        with loaded.transaction() as change:
            change.update_schema().rename_column("E-Mail", "mail").commit()
            change.remove_properties(f"{_METRICS}E-Mail")
            change.set_properties({f"{_METRICS}mail": "none"})
    [task] = loaded.scan().plan_files()

    written = rewrite_without(loaded, task.file, pa.array([1]))

    assert written.lower_bounds.keys() == written.upper_bounds.keys() == {1}
    group = pq.read_metadata(local_path(written.file_path)).row_group(0)
    assert [group.column(number).is_stats_set for number in range(2)] == [True, False]
