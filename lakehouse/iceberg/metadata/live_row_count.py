"""Row count of a snapshot from its files, for summaries whose totals are too low."""

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.dangling_deletes import dangling_deletes
from lakehouse.iceberg.metadata.live_files import LiveFile, read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests

if TYPE_CHECKING:
    from pyiceberg.table import Table


def count_rows(table: "Table", snapshot_id: int) -> int:
    """Return the row count: rows of data files minus live position deletes.

    Parquet delete files for several data files are read, since some can be removed.
    """
    files = list(read_live_files(table, read_manifests(table, snapshot_id)))
    dangling = set(dangling_deletes(files))
    data = [file for file in files if file.content == "data"]
    paths = {file.path for file in data}
    rows = sum(file.rows for file in data)
    for file in files:
        if file.content == "position deletes" and file not in dangling:
            rows -= _deleted_rows(table, file, paths)
    return rows


def _deleted_rows(table: "Table", delete_file: LiveFile, paths: AbstractSet[str]) -> int:
    is_parquet = delete_file.path.endswith(".parquet")
    if delete_file.deletes_from is not None or not is_parquet:
        return delete_file.rows
    return _positions_in(table, delete_file, paths)


def _positions_in(table: "Table", delete_file: LiveFile, paths: AbstractSet[str]) -> int:
    """Return the number of positions in a delete file that apply to existing data files."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow.parquet import ParquetFile

    with table.io.new_input(delete_file.path).open() as opened:
        parquet = ParquetFile(pa.BufferReader(opened.read()))
    deleted_from = parquet.read(columns=["file_path"]).column("file_path")
    is_there = pc.is_in(deleted_from, value_set=pa.array(sorted(paths), pa.string()))
    return len(deleted_from.filter(is_there))
