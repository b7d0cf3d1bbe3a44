"""What Dagster shows of a table and of each write to it, under the names that it and Iceberg
have for these things.

All of it comes from the declaration, from what the write counted, and from one read of the
table's metadata file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.iceberg.metadata.history import history_of
from lakehouse.iceberg.metadata.write_result import Outcome, Pin, Published, Quarantined
from lakehouse.tables.refused_share import NAME as REFUSED_SHARE

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.catalog import Catalog
    from lakehouse.tables.table import Column, IcebergTable

STORAGE_KIND = "iceberg"


def declared_metadata(table: "IcebergTable") -> dict[str, Any]:
    """Return what is known of a table before it is first written."""
    return {
        "dagster/column_schema": column_schema(table),
        "dagster/storage_kind": STORAGE_KIND,
        "iceberg/write_mode": type(table.write).__name__,
        "iceberg/partitioning": ", ".join(table.partitioning) or "none",
    }


def column_schema(table: "IcebergTable") -> dg.TableSchema:
    """Return the columns with their types and docs; personal ones carry a tag."""
    return dg.TableSchema([_column(column) for column in table.columns])


def written_metadata(
    catalog: "Catalog", table: "IcebergTable", outcome: Outcome
) -> dict[str, Any]:
    """Return the standard metadata of a write that was published or found nothing to change;
    scans no data.
    """
    return {
        "nr_rows": nr_rows(outcome),
        **standing_metadata(catalog, table, outcome.snapshot_id),
        **_counts(outcome),
        **outcome.measured,
        **refused_rows(table, outcome),
        **_inputs(outcome.pins),
        **_scanned(outcome.pins.values()),
        **({"partitions": list(outcome.partitions)} if outcome.partitions else {}),
    }


def quarantined_metadata(
    catalog: "Catalog", quarantine: "IcebergTable", found: Quarantined
) -> dict[str, Any]:
    """Return the metadata of a quarantine after rows were refused to it."""
    return {"nr_rows": found.rows, **standing_metadata(catalog, quarantine, found.snapshot_id)}


def nr_rows(outcome: Outcome) -> int:
    """Return how many rows a write was given, before any cleaning: those of its inputs, or else
    of its frame.

    Of partitions, it is what was computed for them, refused rows among it.
    """
    if outcome.partitions and isinstance(outcome, Published):
        return outcome.added_rows + (outcome.quarantined.rows if outcome.quarantined else 0)
    if outcome.pins:
        return sum(pin.rows or 0 for pin in outcome.pins.values())
    return outcome.added_rows if isinstance(outcome, Published) else 0


def pin_metadata(pin: Pin) -> dict[str, Any]:
    """Return what was read of an input."""
    found = {
        "table": pin.table,
        "snapshot_id": str(pin.snapshot_id),
        "rows": pin.rows,
        "note": pin.note,
    }
    if pin.since_snapshot_id:
        found["since_snapshot_id"] = str(pin.since_snapshot_id)
    if pin.scanned:
        found |= {f"scanned_{name}": value for name, value in asdict(pin.scanned).items()}
    return {name: value for name, value in found.items() if value not in (None, "")}


def _scanned(pins: Iterable[Pin]) -> dict[str, int]:
    """Return the files and bytes read of all that the inputs have; nothing where it is not
    known of each of them.
    """
    scanned = [pin.scanned for pin in pins]
    known = [found for found in scanned if found]
    if not known or len(known) < len(scanned):
        return {}
    return {
        "scanned_files": sum(found.files for found in known),
        "scanned_total_files": sum(found.total_files for found in known),
        "scanned_bytes": sum(found.size_bytes for found in known),
        "scanned_total_bytes": sum(found.total_bytes for found in known),
    }


def standing_metadata(
    catalog: "Catalog", table: "IcebergTable", snapshot_id: int | None
) -> dict[str, Any]:
    """Return what a table is as of a snapshot: others may have published since."""
    loaded = catalog.load(table.name)
    snapshot = history_of(table.name, loaded).snapshots[snapshot_id] if snapshot_id else None
    found = {
        "dagster/row_count": snapshot.rows if snapshot else 0,
        "dagster/column_schema": column_schema(table),
        "dagster/table_name": f"{catalog.name}.{table.name}",
        "dagster/uri": loaded.location(),
        "dagster/storage_kind": STORAGE_KIND,
    }
    # Snapshot ids are text, since they exceed what JSON numbers hold.
    return found | ({"iceberg/snapshot_id": str(snapshot_id)} if snapshot else {})


def _counts(outcome: Outcome) -> dict[str, Any]:
    if not isinstance(outcome, Published):
        return {
            "iceberg/operation": "unchanged",
            "iceberg/added_rows": 0,
            "iceberg/deleted_rows": 0,
        }
    counts = {
        "iceberg/operation": outcome.operation,
        "iceberg/added_rows": outcome.added_rows,
        "iceberg/deleted_rows": outcome.deleted_rows,
        "iceberg/inserted_rows": outcome.inserted_rows,
        "iceberg/updated_rows": outcome.updated_rows,
        # Only a merge that may remove rows has this to say.
        "iceberg/removed_rows": outcome.removed_rows or None,
        "iceberg/added_files": outcome.added_files,
        "iceberg/added_bytes": outcome.added_bytes,
        # The count is that of all partitions of the run: for a range, Dagster would show it as
        # that of each.
        "dagster/partition_row_count": (
            outcome.partition_row_count if len(outcome.partitions) == 1 else None
        ),
    }
    return {name: value for name, value in counts.items() if value is not None}


def refused_rows(table: "IcebergTable", outcome: Outcome) -> dict[str, Any]:
    """Return how many rows of a write were refused, of how many, and by which rules; nothing
    without a quarantine.
    """
    if table.quarantine is None:
        return {}
    found = outcome.quarantined
    by_rule = {
        result.rule.name: result.failed_rows
        for result in outcome.results
        if result.rule.on_failure == "quarantine" and result.failed_rows
    }
    evaluated = next(
        (result.total_rows for result in outcome.results if result.rule.name == REFUSED_SHARE),
        0,
    )
    return {
        "quarantined_rows": found.rows if found else 0,
        "newly_quarantined_rows": found.new_rows if found else 0,
        "quarantine_table": table.quarantine.name,
        **({"judged_rows": evaluated, "refused_by_rule": by_rule} if by_rule else {}),
    }


def _inputs(pins: Mapping[str, Pin]) -> dict[str, Any]:
    return (
        {"iceberg/inputs": {name: pin_metadata(pin) for name, pin in pins.items()}}
        if pins
        else {}
    )


def _column(column: "Column") -> dg.TableColumn:
    return dg.TableColumn(
        column.name,
        column.type,
        column.doc or None,
        dg.TableColumnConstraints(nullable=not column.required),
        tags={"personal": ""} if column.personal else None,
    )
