"""Sample rows of a table."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.manifests import own_manifests
from lakehouse.tables.masking import PERSON_SAMPLE_ROWS, redacted
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import DataScan, FileScanTask, Table


def first_rows(
    engine: Engine, table: IcebergTable, snapshot_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Return some rows of a snapshot, first those that it added; masked, no JVM.

    Reads as few files as possible, usually one, and no Avro, which only Spark reads. Only
    declared columns are read, since others can contain personal data.
    """
    loaded = engine.catalog.load(table.name)
    existing = {field.name for field in loaded.schema().fields}
    columns = tuple(name for name in table.column_names if name in existing)
    scan_limit = PERSON_SAMPLE_ROWS if table.has_personal_data else limit
    sample: list[Mapping[str, Any]] = []
    for rows in _rows(
        loaded, loaded.scan(snapshot_id=snapshot_id, selected_fields=columns, limit=scan_limit)
    ):
        sample += rows
        if len(sample) >= limit:
            break
    return redacted(engine.masking_key, table, sample[:limit], sample[:scan_limit])


def _rows(table: "Table", scan: "DataScan") -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each file; a scan would start with all files at once, despite its
    limit.
    """
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.manifest import FileFormat

    reader = ArrowScan(
        scan.table_metadata,
        scan.io,
        scan.projection(),
        scan.row_filter,
        scan.case_sensitive,
        scan.limit,
    )
    for task in _tasks(table, scan):
        if task.file.file_format != FileFormat.AVRO:
            yield _values(reader.to_table([task]))


def _values(rows: "pa.Table") -> list[dict[str, Any]]:
    """Return rows as Python objects; all times as text if one is outside of Python's range."""
    import pyarrow as pa

    try:
        return rows.to_pylist()
    except (ValueError, OverflowError):
        for at, field in enumerate(rows.schema):
            if pa.types.is_temporal(field.type):
                rows = rows.set_column(at, field.name, rows.column(at).cast(pa.string()))
        return rows.to_pylist()


def _tasks(table: "Table", scan: "DataScan") -> "Iterator[FileScanTask]":
    """Yield the files that the snapshot added, then the others, which requires reading all
    manifests.
    """
    added = _added(table, scan)
    yield from added
    known = {task.file.file_path for task in added}
    for task in scan.plan_files():
        if task.file.file_path not in known:
            yield task


def _added(table: "Table", scan: "DataScan") -> "list[FileScanTask]":
    """Return the data files that a snapshot added."""
    from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
    from pyiceberg.table import FileScanTask

    snapshot = scan.snapshot()
    own = own_manifests(table, snapshot.snapshot_id) if snapshot else []
    manifests = (manifest for manifest in own if manifest.content is ManifestContent.DATA)
    entries = (
        entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)
    )
    return [
        FileScanTask(entry.data_file)
        for entry in entries
        if entry.status is ManifestEntryStatus.ADDED
    ]
