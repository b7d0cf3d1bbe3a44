"""Sample rows of a table."""

from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.manifests import own_manifests
from lakehouse.tables.masking import PERSON_SAMPLE_ROWS, redacted
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table


def first_rows(
    engine: Engine, table: IcebergTable, snapshot_id: int, limit: int
) -> list[dict[str, Any]]:
    """Return some rows that a snapshot added, in declared columns; masked, no JVM, no Avro."""
    from pyiceberg.io.pyarrow import ArrowScan

    loaded = engine.catalog.load(table.name)
    existing = {field.name for field in loaded.schema().fields}
    columns = tuple(name for name in table.column_names if name in existing)
    scan_limit = PERSON_SAMPLE_ROWS if table.has_personal_data else limit
    scan = loaded.scan(snapshot_id=snapshot_id, selected_fields=columns)
    reader = ArrowScan(
        loaded.metadata, loaded.io, scan.projection(), scan.row_filter, limit=scan_limit
    )
    sample: list[dict[str, Any]] = []
    for task in _added(loaded, snapshot_id):
        # One file at a time: a scan would start with all files, despite its limit.
        sample += reader.to_table([task]).to_pylist()
        if len(sample) >= limit:
            break
    return redacted(engine.masking_key, table, sample[:limit], sample[:scan_limit])


def _added(table: "Table", snapshot_id: int) -> "list[FileScanTask]":
    """Return the data files that a snapshot added, without Avro."""
    from pyiceberg.manifest import FileFormat, ManifestContent, ManifestEntryStatus
    from pyiceberg.table import FileScanTask

    entries = (
        entry
        for manifest in own_manifests(table, snapshot_id)
        if manifest.content is ManifestContent.DATA
        for entry in manifest.fetch_manifest_entry(table.io)
    )
    return [
        FileScanTask(entry.data_file)
        for entry in entries
        if entry.status is ManifestEntryStatus.ADDED
        and entry.data_file.file_format != FileFormat.AVRO
    ]
