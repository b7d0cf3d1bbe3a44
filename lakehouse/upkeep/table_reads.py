"""Read frequency of tables, from the metrics of runs; no Spark."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.read.scanned_files import READ_SHARE

READ_WINDOW_DAYS = 14
"""Window for read frequencies: two of each weekday."""
UNRECORDED_READS_A_DAY = 0.1
"""Assumed reads by users and other engines, which are not recorded."""


def reads_a_day(catalog: Catalog, metrics_table: str, now: datetime) -> Mapping[str, float]:
    """Return recent reads per day by table, in units of full table reads; empty without metrics.

    :param metrics_table: has the columns of `monitoring.data_quality_metrics`.
    """
    reads = {}
    since = now - timedelta(days=READ_WINDOW_DAYS)
    by_table = recorded_reads(catalog, metrics_table, since) or {}
    for table, rows in by_table.items():
        reads[table] = sum(row["value"] for row in rows) / READ_WINDOW_DAYS
    return reads


def recorded_reads(
    catalog: Catalog, metrics_table: str, since: datetime
) -> Mapping[str, list[dict[str, Any]]] | None:
    """Return the metrics rows of reads since a time, by table; None without metrics."""
    if not catalog.has(metrics_table):
        return None
    from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual

    # mypy's stubs, derived from pydantic fields, hide the PyIceberg constructors.
    of_reads = EqualTo("metric", READ_SHARE)  # type: ignore[call-arg,arg-type]
    recent = GreaterThanOrEqual("measured_at", since.isoformat())  # type: ignore[call-arg,arg-type]
    fields = ("table_name", "value", "snapshot_id")
    scan = catalog.load(metrics_table).scan(And(of_reads, recent), selected_fields=fields)
    by_table: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in scan.to_arrow().to_pylist():
        by_table[row["table_name"]].append(row)
    return by_table
