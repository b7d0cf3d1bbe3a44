"""Sample rows for a materialization, read without Spark after publication."""

from typing import Any

import dagster as dg

from lakehouse.iceberg.metadata.write_result import Outcome, Published
from lakehouse.iceberg.read.sample_rows import first_rows
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.orchestration.run_failures.withheld_values import cause_without_data
from lakehouse.tables.table import IcebergTable

_ROWS = 5


def published_sample(
    context: dg.AssetExecutionContext,
    io: IcebergIOManager,
    table: IcebergTable,
    outcome: Outcome,
) -> dict[str, Any]:
    """Return masked sample rows of a published table; empty for Avro data files.

    A read error is logged as a warning.
    """
    if not isinstance(outcome, Published) or not outcome.row_count:
        return {}
    if outcome.snapshot_id is None:
        return {}
    try:
        rows = first_rows(io.engine, table, outcome.snapshot_id, _ROWS)
    except Exception as error:
        # Any read error, such as a deleted file: the table is already published.
        why = cause_without_data(error)
        context.log.warning(f"{table.name} is published, and no rows of it are shown: {why}.")
        return {}
    return WriteMetadata(sample=tuple(rows)).to_metadata() if rows else {}
