"""History of table sizes from health measurements."""

from datetime import datetime

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.time_series import Point, Series


def size_history(catalog: Catalog, health_table: str, since: datetime) -> dict[str, Series]:
    """Return the data file bytes by table and measurement time since a time.

    :param health_table: `monitoring.table_health`; empty if it does not exist.
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
