"""A single name or value may be given as text, where several may be given as a list."""

import pytest

from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit


def test_a_table_takes_a_single_column_as_it_is():
    named = {
        "partitioning": "day",
        "sort_order": "id desc",
        "bloom_filters": "id",
        "dropped": "old",
    }
    columns = [Column("id", "bigint"), Column("day", "date")]

    single = IcebergTable("silver.a", "", columns, Append(once_by="id"), **named)
    listed = IcebergTable(
        "silver.a",
        "",
        columns,
        Append(once_by=["id"]),
        **{part: [name] for part, name in named.items()},
    )

    assert single.once_by == ("id",)
    assert single.declaration_hash == listed.declaration_hash
    for part, name in named.items():
        assert getattr(single, part) == getattr(listed, part) == (name,)
