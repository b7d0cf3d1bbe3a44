"""Another table is named by its declaration, or by its name where it is declared elsewhere."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import (
    as_of,
    changed_keys,
    declared_inputs,
    existing_rows,
    incremental,
    latest,
    versions_of,
)
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.unique_and_references import references
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit

TABLE = IcebergTable("silver.t", "t", [Column("id", "bigint")], Overwrite())
NAMING = {
    "latest": lambda table: latest(table, by="id"),
    "incremental": lambda table: incremental(table),
    "versions_of": lambda table: versions_of(table),
    "existing_rows": lambda table: existing_rows(table, by="id"),
    "changed_keys": lambda table: changed_keys(table, of="id", by="id"),
    "as_of": lambda table: as_of(table, timestamp=datetime(2024, 1, 31, tzinfo=UTC)),
    "reconciles": lambda table: reconciles(table, here="sum(id)"),
    "references": lambda table: references("id", table),
    "asset_key": asset_key,
}


@pytest.mark.parametrize("name", NAMING)
def test_a_table_means_the_same_as_its_name(name):
    assert NAMING[name](TABLE) == NAMING[name](TABLE.name)


@pytest.mark.parametrize("name", NAMING)
def test_what_is_no_table_is_named_by_its_type(name):
    with pytest.raises(
        DeclarationError, match="A table was given as AssetSpec; expected an Iceb"
    ):
        NAMING[name](dg.AssetSpec("t"))


def test_an_input_that_is_a_table_alone_is_its_latest_state():
    assert declared_inputs("gold.t", {"rows": TABLE, "own": incremental(TABLE)}) == {
        "rows": latest("silver.t"),
        "own": incremental("silver.t"),
    }


@pytest.mark.parametrize(
    ("given", "shown"), [("silver.t", "'silver.t'"), (dg.AssetSpec("t"), "of type AssetSpec")]
)
def test_an_input_that_is_neither_a_table_nor_how_one_is_read_is_named(given, shown):
    with pytest.raises(DeclarationError) as raised:
        declared_inputs("gold.t", {"rows": given})

    assert f"gold.t: input rows is {shown}; expected a table, or how one is read" in str(
        raised.value
    )
