"""How many rows there are to read for each partition of an asset, told by manifests."""

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
    """Return how many rows the sources of some tables have for each partition; nothing where they
    all together are few enough for one run.

    The rows of a day that lies in several partitions, such as hours, count for each in equal
    parts. Those of files that do not tell their partition are left out.

    :param tables: each with what it reads.
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
    """Return the tables that others are computed from and that are none of these, each with the
    column that tells its partitions, and the type of theirs.
    """
    computed = {table.name for table, _ in tables}
    sources: dict[tuple[str, str], str] = {}
    for table, inputs in tables:
        for source, column in followed(table, inputs).items():
            if source not in computed and engine.catalog.has(source):
                assert table.overwritten_by is not None
                sources[source, column] = table.column(table.overwritten_by).type
    return sources
