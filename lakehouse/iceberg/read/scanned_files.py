"""Files and bytes that a read scans, compared with the entire table, from metadata."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import read_files
from lakehouse.iceberg.metadata.partition_metadata import partition_fields
from lakehouse.iceberg.metadata.snapshots import History, history_of
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Pin, Scanned

if TYPE_CHECKING:
    from pyiceberg.table import Table

READ_SHARE = "read_share"
"""Metric of an input table: the share of its files that a run read, above 0 to 1."""


def with_scanned(
    engine: Engine, inputs: Mapping[str, Input], pins: Mapping[str, Pin], run: Run
) -> dict[str, Pin]:
    """Return the pins with the scanned files of each, if the metadata contains them."""
    return {
        name: replace(pin, scanned=_scanned(engine, inputs[name], pin, run))
        for name, pin in pins.items()
    }


def _scanned(engine: Engine, declared: Input, pin: Pin, run: Run) -> Scanned | None:
    if (
        pin.snapshot_id is None
        or declared.mode == "changed_keys"
        or (declared.mode == "existing_rows" and declared.outside)
    ):
        return None
    table = engine.catalog.load(pin.table)
    history = history_of(pin.table, table)
    head = history.snapshots[pin.snapshot_id]
    total_files, total_bytes = head.count("total-data-files"), head.count("total-files-size")
    if declared.mode == "existing_rows" and not pin.rows:
        files = size = 0
    elif pin.since_snapshot_id is not None:
        files, size = _appended(history, pin.since_snapshot_id, pin.snapshot_id)
    elif declared.by and run.partitions:
        in_partitions = _in_partitions(table, pin.snapshot_id, declared, run)
        if in_partitions is None:
            return None
        files, size = in_partitions
    else:
        files, size = total_files, total_bytes
    return Scanned(files, total_files, size, total_bytes)


def _appended(history: History, since: int, until: int) -> tuple[int, int]:
    added = history.between(since, until)
    assert added is not None
    appends = [snapshot for snapshot in added if snapshot.operation == "append"]
    return (
        sum(snapshot.count("added-data-files") for snapshot in appends),
        sum(snapshot.count("added-files-size") for snapshot in appends),
    )


def _in_partitions(
    table: "Table", snapshot_id: int, declared: Input, run: Run
) -> tuple[int, int] | None:
    """Return the files and bytes of the run's partitions, or outside; None if unknown."""
    assert declared.by is not None
    assert run.partitions is not None
    fields = partition_fields(table, declared.by)
    files = size = 0
    for file in read_files(table, snapshot_id):
        field = fields.get(file.spec_id)
        if field is None:
            return None
        value = file.partition[field.name]
        if not run.partitions.has(value) if declared.outside else run.partitions.touches(value):
            files, size = files + 1, size + file.size_bytes
    return files, size
