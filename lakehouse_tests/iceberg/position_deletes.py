"""Position deletes written without Spark: PyIceberg itself writes none."""

from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestWriter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles

from lakehouse.iceberg.catalog.pyiceberg_internals import delete_manifest_writer

PATH_FIELD_ID = 2147483546


class RowDelta(_FastAppendFiles):
    """A commit that adds delete files."""

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return delete_manifest_writer(
            spec,
            self._transaction.table_metadata.schema(),
            self.new_manifest_output(),
            self._snapshot_id,
            self._compression,
        )


def delete_first_rows(table: Table, *paths: str) -> None:
    """Delete the first row of some data files of one partition, by one delete file."""
    files = {task.file.file_path: task.file for task in table.scan().plan_files()}
    with table.transaction() as change:
        commit = RowDelta(Operation.DELETE, change, table.io)
        commit.append_data_file(_delete_file(table, sorted(paths), files[paths[0]].partition))
        commit.commit()


def _delete_file(table: Table, paths: list[str], partition: Any) -> DataFile:
    path = f"{table.location()}/data/{uuid4().hex}-deletes.parquet"
    with table.io.new_output(path).create() as opened:
        parquet.write_table(pa.table({"file_path": paths, "pos": [0] * len(paths)}), opened)
    written = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=len(paths),
        file_size_in_bytes=len(table.io.new_input(path)),
        lower_bounds={PATH_FIELD_ID: paths[0].encode()},
        upper_bounds={PATH_FIELD_ID: paths[-1].encode()},
    )
    written.spec_id = table.spec().spec_id
    return written
