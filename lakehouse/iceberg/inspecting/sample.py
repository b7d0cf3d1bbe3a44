"""Some rows of a table, to see what it holds."""

from collections.abc import Mapping
from typing import Any

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.masking import mask_row
from lakehouse.iceberg.table import IcebergTable


def first_rows(engine: Engine, table: IcebergTable, snapshot_id: int | None, limit: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a snapshot that are come by, personal values masked; reads one file, and starts no JVM.

    Only declared columns: of others nobody knows whether they identify a person.
    """
    loaded = engine.catalog.load(table.name)
    there = {field.name for field in loaded.schema().fields}
    columns = tuple(name for name in table.column_names if name in there)
    found = loaded.scan(snapshot_id=snapshot_id, selected_fields=columns, limit=limit).to_arrow().to_pylist()
    return [mask_row(engine.masking_key, row, table.personal_columns) for row in found]
