"""Column lineage from a declaration or a query; never guessed."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.sql_columns import passed_on
from lakehouse.orchestration.sql_function import SqlFunction
from lakehouse.tables.table import IcebergTable

COLUMN_LINEAGE = "dagster/column_lineage"
"""Dagster's metadata key."""
Source = tuple[str, str]
"""A table and a column of it."""


def lineage_metadata(
    table: IcebergTable,
    compute: Callable[..., Any],
    inputs: Mapping[str, Input],
    declared: Mapping[str, IcebergTable],
) -> dict[str, dg.TableColumnLineage]:
    """Return the column lineage metadata of a table; empty if it is unknown.

    :param declared: declared tables of the project, by name.
    """
    if isinstance(compute, SqlFunction):
        sources = _of_query(table, compute, inputs, declared)
    else:
        sources = _of_rows(table, inputs)
    if not sources:
        return {}
    lineage = {
        name: [dg.TableColumnDep(asset_key(source), column) for source, column in found]
        for name, found in sources.items()
    }
    return {COLUMN_LINEAGE: dg.TableColumnLineage(lineage)}


def _of_rows(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, list[Source]]:
    """Return the source columns of a table that has `rows_of`."""
    raw = table.rows_of
    if raw is None or raw.name not in {declared.table for declared in inputs.values()}:
        return {}
    sources: dict[str, list[Source]] = {}
    for column in table.columns:
        names = (column.name, *column.renamed_from)
        there = [name for name in names if name in raw.column_names]
        if there and column.cast and column.name != table.stamp:
            sources[column.name] = [(raw.name, there[0])]
    return sources


def _of_query(
    table: IcebergTable,
    query: SqlFunction,
    inputs: Mapping[str, Input],
    declared: Mapping[str, IcebergTable],
) -> dict[str, list[Source]]:
    columns = {}
    for name, read in inputs.items():
        # A past snapshot can have other columns.
        if read.table in declared and read.mode != "as_of":
            columns[name] = read.keys or declared[read.table].column_names
    known = {name.lower(): name for name in table.column_names}
    sources: dict[str, list[Source]] = {}
    for passed in passed_on(query.tokens, columns):
        column = known.get(passed.name.lower())
        if column and column != table.stamp:
            sources.setdefault(column, []).append(
                (inputs[passed.input_name].table, passed.source)
            )
    # A name with two sources is ambiguous.
    return {name: found for name, found in sources.items() if len(found) == 1}
