"""How large tables were from time to time, as upkeep measured them."""

from datetime import datetime

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.time_series import Point, Series


def size_history(catalog: Catalog, health_table: str, since: datetime) -> dict[str, Series]:
    """Return by table the bytes of its data files at each time of measuring since a moment.

    :param health_table: `monitoring.table_health`; nothing where it is not there.
    """
    if not catalog.has(health_table):
        return {}
    fields = ("table_name", "measured_at", "data_bytes")
    where = f"measured_at >= '{since.isoformat()}'"
    scan = catalog.load(health_table).scan(where, selected_fields=fields)
    points: dict[str, list[Point]] = {}
    for row in scan.to_arrow().sort_by("measured_at").to_pylist():
        if row["data_bytes"] is not None:
            point = (row["measured_at"], float(row["data_bytes"]))
            points.setdefault(row["table_name"], []).append(point)
    return {table: tuple(series) for table, series in points.items()}
