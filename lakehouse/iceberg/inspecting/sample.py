"""Some rows of a table, to see what it holds."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.masking import mask_row
from lakehouse.iceberg.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import DataScan


def first_rows(engine: Engine, table: IcebergTable, snapshot_id: int | None, limit: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a snapshot that are come by, personal values masked; starts no JVM.

    It reads no more files than it takes, most often one. Only declared columns are read: of others nobody knows whether
    they identify a person.
    """
    loaded = engine.catalog.load(table.name)
    there = {field.name for field in loaded.schema().fields}
    columns = tuple(name for name in table.column_names if name in there)
    found = islice(_rows(loaded.scan(snapshot_id=snapshot_id, selected_fields=columns, limit=limit)), limit)
    return [mask_row(engine.masking_key, row, table.personal_columns) for row in found]


def _rows(scan: "DataScan") -> Iterator[dict[str, Any]]:
    """Yield rows file by file: the scan itself begins with all files at once, whatever its limit is."""
    from pyiceberg.io.pyarrow import ArrowScan

    reader = ArrowScan(
        scan.table_metadata, scan.io, scan.projection(), scan.row_filter, scan.case_sensitive, scan.limit
    )
    for file in scan.plan_files():
        yield from reader.to_table([file]).to_pylist()
