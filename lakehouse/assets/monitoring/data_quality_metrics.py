"""`monitoring.data_quality_metrics`: metrics of each run and table, for trends."""

from lakehouse.iceberg.write.append_without_spark import DIRECT_APPENDS
from lakehouse.orchestration.asset_specs import table_spec
from lakehouse.tables.table import Append, Column, IcebergTable

TABLE = IcebergTable(
    name="monitoring.data_quality_metrics",
    comment=(
        "What each run measured of each table, one row for each metric; appended once a run,"
        " when it has ended."
    ),
    columns=[
        Column("table_name", "string", "The table that was measured.", required=True),
        Column(
            "metric",
            "string",
            "What was measured: record_count, daily_growth, nr_rows; and by check or column"
            " failed_fraction.CHECK, null_fraction.COLUMN, distinct_count.COLUMN.",
            required=True,
        ),
        Column("value", "double", "The number.", required=True),
        Column("measured_at", "timestamp", "When it was measured.", required=True),
        Column(
            "snapshot_id",
            "bigint",
            "The table's snapshot that it was measured on, as in its snapshots.",
        ),
        Column(
            "partition",
            "string",
            "The run's partitions that it is about: one, or the first and the last.",
        ),
        Column("run_id", "string", "The Dagster run that measured it.", required=True),
    ],
    write=Append(once_by=("run_id",)),
    properties=DIRECT_APPENDS,
    owner="data-platform",
)

ASSET = table_spec(
    TABLE,
    description=(
        "Metrics of each run and table, for trends: rows and growth, rows of each ingest,"
        " files and bytes read, the failed fraction of each check, and null fractions and"
        " distinct counts of columns declared `profiled`. Appended once per finished run, by"
        " the command that ran it or by the sensor `run_metrics`."
    ),
)
