"""Dagster metadata of tables and writes, with Dagster's and Iceberg's own keys."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.iceberg.metadata.partition_metadata import added_rows, present_rows
from lakehouse.iceberg.metadata.snapshots import history_of
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Pin,
    Published,
    Quarantined,
    Refused,
)
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import (
    UNCHANGED,
    DeclaredMetadata,
    QuarantineMetadata,
    WriteMetadata,
)
from lakehouse.tables.table_validation import REFUSED_SHARE

if TYPE_CHECKING:
    from lakehouse.iceberg.catalog.catalog import Catalog
    from lakehouse.iceberg.values.write_context import Partitions
    from lakehouse.tables.table import Column, IcebergTable

STORAGE_KIND = "iceberg"


def declared_metadata(table: "IcebergTable") -> dict[str, Any]:
    """Return the metadata of a table before its first write."""
    return DeclaredMetadata(
        column_schema=column_schema(table),
        storage_kind=STORAGE_KIND,
        write_mode=type(table.write).__name__,
        partitioning=", ".join(table.partitioning) or "none",
        quarantine=asset_key(table.quarantine.name) if table.quarantine else None,
        contract=f"lakehouse contract {table.name}",
    ).to_metadata()


def column_schema(table: "IcebergTable") -> dg.TableSchema:
    """Return columns with types and docs; personal columns have a tag."""
    return dg.TableSchema([_column(column) for column in table.columns])


def written_metadata(
    catalog: "Catalog", table: "IcebergTable", outcome: Outcome
) -> dict[str, Any]:
    """Return the standard metadata of a published or unchanged write; scans no data."""
    written = replace(
        table_metadata(catalog, table, outcome.snapshot_id),
        nr_rows=nr_rows(outcome),
        inputs={name: pin_metadata(pin) for name, pin in outcome.pins.items()},
        partitions=tuple(outcome.partitions),
        suppressed_rows=sum(outcome.suppressed_rows.values()) or None,
        **_counts(outcome),
    )
    return {
        **written.to_metadata(),
        **outcome.profile,
        **quarantine_counts(table, outcome).to_metadata(),
    }


def rows_by_partition(
    catalog: "Catalog", table: "IcebergTable", outcome: Outcome, partitions: "Partitions | None"
) -> dict[str, int]:
    """Return the row count of each partition of a run; empty if files do not contain it."""
    by, snapshot_id = table.overwritten_by, outcome.snapshot_id
    if not partitions or not by or isinstance(outcome, Refused):
        return {}
    if snapshot_id is None:
        return dict.fromkeys(partitions.values, 0)
    loaded = catalog.load(table.name)
    if isinstance(outcome, Published):
        rows = added_rows(loaded, snapshot_id, by, partitions)
        is_complete = rows and sum(rows.values()) == outcome.partition_row_count
    else:
        rows = present_rows(loaded, snapshot_id, by, partitions)
        is_complete = rows is not None
    return rows if rows and is_complete else {}


def suppression_warnings(rows: Mapping[str, int]) -> list[str]:
    """Return a warning for each table with omitted rows of erased data subjects."""
    warnings = []
    for table, count in sorted(rows.items()):
        noun = "row" if count == 1 else "rows"
        warnings.append(
            f"{count:,} {noun} of {table} are of people who were erased: suppressed."
        )
    return warnings


def quarantined_metadata(
    catalog: "Catalog", quarantine: "IcebergTable", quarantined: Quarantined
) -> dict[str, Any]:
    """Return the metadata of a quarantine after a write added rows."""
    written = table_metadata(catalog, quarantine, quarantined.snapshot_id)
    return replace(written, nr_rows=quarantined.rows).to_metadata()


def nr_rows(outcome: Outcome) -> int:
    """Return the number of input rows before cleaning, else of the DataFrame's rows.

    For partitions: the number of rows computed for them, including quarantined rows.
    """
    if outcome.partitions and isinstance(outcome, Published):
        return outcome.added_rows + (outcome.quarantined.rows if outcome.quarantined else 0)
    if outcome.pins:
        return sum(pin.rows or 0 for pin in outcome.pins.values())
    return outcome.added_rows if isinstance(outcome, Published) else 0


def pin_metadata(pin: Pin) -> dict[str, Any]:
    """Return what was read of an input; no snapshot id for a table without a snapshot."""
    read = {
        "table": pin.table,
        "snapshot_id": str(pin.snapshot_id) if pin.snapshot_id else None,
        "rows": pin.rows,
        "note": pin.note,
    }
    if pin.since_snapshot_id:
        read["since_snapshot_id"] = str(pin.since_snapshot_id)
    return {name: value for name, value in read.items() if value not in (None, "")}


def table_metadata(
    catalog: "Catalog", table: "IcebergTable", snapshot_id: int | None
) -> WriteMetadata:
    """Return the state of a table at a snapshot; newer ones can exist."""
    loaded = catalog.load(table.name)
    snapshot = history_of(table.name, loaded).snapshots[snapshot_id] if snapshot_id else None
    return WriteMetadata(
        row_count=snapshot.rows if snapshot else 0,
        column_schema=column_schema(table),
        table_name=f"{catalog.name}.{table.name}",
        uri=loaded.location(),
        storage_kind=STORAGE_KIND,
        snapshot_id=snapshot_id or None,
    )


def quarantine_counts(table: "IcebergTable", outcome: Outcome) -> QuarantineMetadata:
    """Return the quarantine statistics of a write; empty without a quarantine."""
    if table.quarantine is None:
        return QuarantineMetadata()
    by_rule: dict[str, int] = {}
    evaluated_rows = 0
    for result in outcome.results:
        if result.rule.on_failure == "quarantine" and result.failed_rows:
            by_rule[result.rule.name] = result.failed_rows
        if result.rule.name == REFUSED_SHARE:
            evaluated_rows = result.total_rows
    quarantined = outcome.quarantined or Quarantined(table.quarantine.name, 0, 0, None)
    # Each run evaluates the rows outside of partitions again.
    evaluated_rows -= quarantined.outside_rows - quarantined.unevaluated_rows
    return QuarantineMetadata(
        rows=quarantined.rows,
        new_rows=quarantined.new_rows,
        table=table.quarantine.name,
        evaluated_rows=evaluated_rows if by_rule else None,
        by_rule=by_rule,
        outside_rows=quarantined.outside_rows or None,
    )


def _counts(outcome: Outcome) -> dict[str, Any]:
    if not isinstance(outcome, Published):
        return {"operation": UNCHANGED, "added_rows": 0, "deleted_rows": 0}
    return {
        "operation": outcome.operation,
        "added_rows": outcome.added_rows,
        "deleted_rows": outcome.deleted_rows,
        "inserted_rows": outcome.inserted_rows,
        "updated_rows": outcome.updated_rows,
        # Only a merge that can delete rows has this count.
        "removed_rows": outcome.removed_rows or None,
        "added_files": outcome.added_files,
        "added_bytes": outcome.added_bytes,
        # The count covers all partitions of the run; Dagster would show it for each of a range.
        "partition_row_count": (
            outcome.partition_row_count if len(outcome.partitions) == 1 else None
        ),
    }


def _column(column: "Column") -> dg.TableColumn:
    return dg.TableColumn(
        column.name,
        column.type,
        column.doc or None,
        dg.TableColumnConstraints(nullable=not column.required),
        tags={"personal": ""} if column.personal else None,
    )
