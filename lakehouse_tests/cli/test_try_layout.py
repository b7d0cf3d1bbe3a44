"""What of a tried table people are shown."""

import pytest

from lakehouse.cli.output.cell_values import columns_named
from lakehouse.cli.try_table import without_hash

pytestmark = pytest.mark.unit


def test_the_hash_of_a_file_is_not_shown():
    columns = columns_named(("id", "_source_file", "_source_sha256", "_source_row"))
    shown, rows = without_hash(columns, [[1, "a.csv", "0f3a", 7], [2, "b.csv", "9c21", 8]])

    assert [column.name for column in shown] == ["id", "_source_file", "_source_row"]
    assert rows == [[1, "a.csv", 7], [2, "b.csv", 8]]
