"""Number of source rows for each partition of an asset, from Iceberg manifests."""

from collections.abc import Mapping, Sequence

import dagster as dg

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.rows_by_value import rows_by_value
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.orchestration.partition_bounds import keys_holding
from lakehouse.orchestration.partition_groups import MOST_ROWS
from lakehouse.tables.table import IcebergTable


def source_rows(
    engine: Engine,
    tables: Sequence[tuple[IcebergTable, Mapping[str, Input]]],
    definition: dg.PartitionsDefinition,
    keys: Sequence[str],
) -> dict[str, float]:
    """Return the number of source rows for each partition; empty if one run can read them all.

    Rows of a day that overlaps several partitions, such as hours, are distributed equally.
    Files without a partition value are skipped.

    :param tables: tables and their inputs.
    :param keys: all keys of the definition, in order.
    """
    sources = _sources(engine, tables)
    heads = {source: read_history(engine, source).main for source, _ in sources}
    if sum(head.rows for head in heads.values() if head) <= MOST_ROWS:
        return {}
    rows: dict[str, float] = {}
    for (source, column), column_type in sources.items():
        head = heads[source]
        if head is None:
            continue
        counts = rows_by_value(engine.catalog.load(source), head.snapshot_id, column)
        for value, count in counts.items():
            holding = keys_holding(definition, keys, [value], column_type)
            for key in holding:
                rows[key] = rows.get(key, 0) + count / len(holding)
    return rows


def _sources(
    engine: Engine, tables: Sequence[tuple[IcebergTable, Mapping[str, Input]]]
) -> dict[tuple[str, str], str]:
    """Return the external source tables with their partition column and the target's type."""
    computed = {table.name for table, _ in tables}
    sources: dict[tuple[str, str], str] = {}
    for table, inputs in tables:
        for source, column in followed(table, inputs).items():
            if source not in computed and engine.catalog.has(source):
                assert table.overwritten_by is not None
                sources[source, column] = table.column(table.overwritten_by).type
    return sources
