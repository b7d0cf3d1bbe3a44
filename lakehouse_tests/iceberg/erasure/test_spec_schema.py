"""Manifests of a partition spec whose column was dropped are written by a schema that has it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pyiceberg.table import Table

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.remove_from_files import clean_manifests, rewrite_erased_files
from lakehouse.tables.table import Column
from lakehouse_tests.iceberg.erasure.people import ANNA, ORDERS, REQUEST, content, fill, tag

KINDS = replace(
    ORDERS,
    columns=[Column("customer_id", "bigint"), Column("kind", "decimal(5,2)")],
    partitioning=["kind"],
)


def drop_kind(engine: Engine) -> Table:
    """Drop the column that a table is partitioned by, as somebody might by DDL."""
    loaded = engine.catalog.load(KINDS.name)
    with loaded.update_spec() as spec:
        spec.remove_field("kind")
    with loaded.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("kind")
    return engine.catalog.load(KINDS.name)


@pytest.mark.parametrize("kind", [None, Decimal("1.50")])
def test_rows_leave_main_and_a_tag(engine: Engine, kind: Decimal | None) -> None:
    fill(engine, KINDS, [(7, kind), (8, kind)])
    fill(engine, KINDS, [(9, kind)])
    tag(engine, KINDS, "month_end")
    drop_kind(engine)

    assert delete_rows(engine, KINDS, [ANNA], REQUEST).rows == {"main": 1, "month_end": 1}
    rewritten = rewrite_erased_files(engine, KINDS.name, REQUEST)
    cleaned = clean_manifests(engine, KINDS.name, REQUEST)

    assert (rewritten.outcome, cleaned.outcome) == ("done", "skipped")
    for ref in ("main", "month_end"):
        assert [row[0] for row in content(engine, KINDS, ref)] == [8, 9]
