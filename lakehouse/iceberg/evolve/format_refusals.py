"""Table formats that the Iceberg release of an older Spark would write incorrectly."""

from collections.abc import Iterator

from lakehouse.iceberg.evolve.schema_steps import Refusal
from lakehouse.iceberg.metadata.iceberg_release import IcebergRelease
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.tables.row_level import VECTORS_SINCE
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.table_properties import table_properties


def format_refusals(
    table: IcebergTable, state: TableState | None, iceberg: IcebergRelease
) -> Iterator[Refusal]:
    """Yield a refusal if the Iceberg release cannot write the table's format."""
    current = state.format_version if state else 0
    declared = table_properties(table)["format-version"]
    reason = iceberg.refuses_format_3()
    if max(int(declared), current) < VECTORS_SINCE or reason is None:
        return
    yield Refusal(
        table.name,
        "its format version",
        str(current or "none yet"),
        declared,
        reason,
        "Declare format_version=2, or write it by a newer Iceberg (LAKEHOUSE_ICEBERG).",
    )
