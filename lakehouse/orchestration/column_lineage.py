"""Column lineage of a table whose rows are those of another table."""

from collections.abc import Mapping

import dagster as dg

from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.tables.table import IcebergTable

COLUMN_LINEAGE = "dagster/column_lineage"
"""Dagster's metadata key."""


def lineage_metadata(
    table: IcebergTable, inputs: Mapping[str, Input]
) -> dict[str, dg.TableColumnLineage]:
    """Return the column lineage of a table with `rows_of`; empty without it, never guessed."""
    raw = table.rows_of
    if raw is None or raw.name not in {declared.table for declared in inputs.values()}:
        return {}
    lineage: dict[str, list[dg.TableColumnDep]] = {}
    for column in table.columns:
        names = (column.name, *column.renamed_from)
        sources = [name for name in names if name in raw.column_names]
        if sources and column.cast and column.name != table.stamp:
            lineage[column.name] = [dg.TableColumnDep(asset_key(raw.name), sources[0])]
    return {COLUMN_LINEAGE: dg.TableColumnLineage(lineage)} if lineage else {}
