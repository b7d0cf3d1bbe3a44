"""How a merged table changes rows where nothing declares it: by its size, and by how many rows a
merge changes.
"""

from typing import Any

import pytest

from lakehouse.iceberg.evolve.row_level_mode import (
    choose_for_merge,
    choose_for_table,
    is_chosen,
)
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse.tables.table_properties import table_properties

pytestmark = pytest.mark.unit
MIB = 1024**2
COW, MOR = "copy-on-write", "merge-on-read"


def declared(**parts: Any) -> IcebergTable:
    return IcebergTable(
        **{
            "name": "silver.orders",
            "comment": "Orders.",
            "columns": [Column("id", "bigint")],
            "write": Merge(on=["id"]),
        }
        | parts
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, True),
        ({"row_level": COW}, False),
        ({"row_level": MOR}, False),
        ({"properties": {"write.merge.mode": COW}}, False),
        ({"write": Append(once_by=())}, False),
    ],
)
def test_it_is_chosen_for_merged_tables_that_declare_nothing(
    parts: dict[str, Any], expected: bool
) -> None:
    assert is_chosen(declared(**parts)) is expected


@pytest.mark.parametrize(
    ("parts", "row_level", "expected"),
    [
        ({}, COW, COW),
        ({}, MOR, MOR),
        ({"row_level": COW}, MOR, COW),
        ({"row_level": MOR}, COW, MOR),
    ],
)
def test_a_declaration_decides(parts: dict[str, Any], row_level: Any, expected: str) -> None:
    properties = table_properties(declared(**parts), row_level)
    names = ["write.delete.mode", "write.merge.mode", "write.update.mode"]
    assert [properties[name] for name in names] == [expected] * 3


@pytest.mark.parametrize(
    ("mib", "current", "expected"),
    [
        (0, None, COW),
        (15, COW, COW),
        (16, COW, MOR),
        (16, None, MOR),
        (8, MOR, MOR),
        (7, MOR, COW),
        (8, COW, COW),
    ],
)
def test_a_large_table_uses_delete_files_until_it_is_a_small_one(
    mib: int, current: str | None, expected: str
) -> None:
    assert choose_for_table(current, 2, mib * MIB, 0).mode == expected


def test_a_table_that_has_delete_files_uses_more_of_them_however_small_it_is() -> None:
    assert choose_for_table(MOR, 2, MIB, 1).mode == MOR


def test_a_table_of_a_format_without_delete_files_uses_none() -> None:
    assert choose_for_table(MOR, 1, 640 * MIB, 0).mode == COW


@pytest.mark.parametrize(
    ("current", "version", "deleted_rows", "changed_rows", "expected"),
    [
        (MOR, 2, 0, 1, MOR),
        (MOR, 2, 0, 200, MOR),
        (MOR, 2, 0, 201, COW),
        (MOR, 3, 150, 50, MOR),
        (MOR, 3, 150, 51, COW),
        # They would outlive the data files that they are of.
        (MOR, 2, 150, 51, MOR),
        (COW, 2, 0, 1, COW),
    ],
)
def test_a_merge_that_changes_much_writes_whole_files(
    current: str, version: int, deleted_rows: int, changed_rows: int, expected: str
) -> None:
    chosen = choose_for_merge(current, version, 1000, deleted_rows, changed_rows)
    assert chosen.mode == expected
