"""Reads and writes position deletes; no JVM."""

import struct
from collections.abc import Collection, Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakehouse.iceberg.catalog.pyiceberg_internals import read_deletes
from lakehouse.iceberg.metadata.manifests import DELETED_FROM_PATH, read_manifests

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

_POSITION_ID = 2147483545
"""Field id of the positions in a delete file, reserved by Iceberg's specification."""


class DeletedPositions:
    """The positions in the delete files of a table; each file is read once."""

    def __init__(self, table: "Table") -> None:
        self._table = table
        self._read: dict[str, Mapping[str, pa.ChunkedArray[Any]]] = {}
        self._reading = Lock()

    def of(self, task: "FileScanTask") -> "pa.Array[Any]":
        """Return the sorted positions that are deleted of a data file."""
        import pyarrow as pa

        chunks = []
        for file in task.delete_files:
            positions = self.by_path(file).get(task.file.file_path)
            if positions is not None:
                chunks += [chunk.cast(pa.int64()) for chunk in positions.chunks]
        return pa.chunked_array(chunks, pa.int64()).combine_chunks().unique().sort()

    def by_path(self, delete_file: "DataFile") -> "Mapping[str, pa.ChunkedArray[Any]]":
        """Return the positions in a delete file, by the path of their data file."""
        with self._reading:
            known = self._read.get(delete_file.file_path)
            if known is None:
                known = read_deletes(self._table.io, delete_file)
                self._read[delete_file.file_path] = known
        return known

    def unneeded(
        self, delete_files: "Iterable[DataFile]", live_paths: Collection[str]
    ) -> "list[DataFile]":
        """Return the delete files that apply to no data file that remains."""
        return [
            file
            for file in delete_files
            if not any(path in live_paths for path in self.by_path(file))
        ]


def live_delete_files(table: "Table", snapshot_id: int) -> "list[DataFile]":
    """Return the delete files of a snapshot, including those of removed data files."""
    files = []
    for manifest in read_manifests(table, snapshot_id):
        if int(manifest.content) != 0:
            entries = manifest.fetch_manifest_entry(table.io)
            files += [entry.data_file for entry in entries]
    return files


def write_position_deletes(
    table: "Table", file: "DataFile", positions: "pa.Array[Any]"
) -> "DataFile":
    """Write a file that deletes rows of one data file, and return its manifest entry.

    Its bounds contain the full path of the data file, so that it applies to no other.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    path = table.location_provider().new_data_location(f"{uuid4()}-deletes.parquet")
    paths = pa.array([file.file_path] * len(positions), pa.string())
    columns = {"file_path": (paths, DELETED_FROM_PATH), "pos": (positions, _POSITION_ID)}
    schema = pa.schema(
        pa.field(name, values.type, nullable=False, metadata={"PARQUET:field_id": str(number)})
        for name, (values, number) in columns.items()
    )
    output = table.io.new_output(path)
    stream: Any
    with output.create() as stream:
        rows = pa.Table.from_arrays([paths, positions], schema=schema)
        pq.write_table(rows, stream, compression="zstd")
    name = file.file_path.encode()
    low, high = (struct.pack("<q", positions[at].as_py()) for at in (0, -1))
    entry = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=file.partition,
        record_count=len(positions),
        file_size_in_bytes=len(output),
        lower_bounds={DELETED_FROM_PATH: name, _POSITION_ID: low},
        upper_bounds={DELETED_FROM_PATH: name, _POSITION_ID: high},
    )
    entry.spec_id = file.spec_id
    return entry
