"""`monitoring.upkeep_runs`: the planned and actual results of each upkeep step."""

from lakehouse.iceberg.write.append_without_spark import DIRECT_APPENDS
from lakehouse.orchestration.asset_specs import table_spec
from lakehouse.tables.table import Append, Column, IcebergTable

TABLE = IcebergTable(
    name="monitoring.upkeep_runs",
    comment="What upkeep did to each table, one row for each step; appended once a round.",
    columns=[
        Column("table_name", "string", "The table that was kept.", required=True),
        Column(
            "step",
            "string",
            "What was done: compact, drop_branches, expire_snapshots, rewrite_manifests,"
            " remove_orphans.",
            required=True,
        ),
        Column("outcome", "string", "done, skipped, partial or failed.", required=True),
        Column("reason", "string", "Why it was skipped, is partial or failed."),
        Column("ended_at", "timestamp", "When the step had ended.", required=True),
        Column("promised_fewer_files", "bigint", "Data and delete files less, as planned."),
        Column("fewer_files", "bigint", "Data and delete files less, as counted."),
        Column("promised_cost_bytes", "bigint", "Bytes read and written, as planned."),
        Column("cost_bytes", "bigint", "Bytes read and written, as counted."),
        Column("seconds", "double", "How long the step took."),
        Column(
            "record", "string", "All of it as JSON, which the next plan reads.", required=True
        ),
        Column("run_id", "string", "The round that the step was of.", required=True),
    ],
    write=Append(once_by=("run_id",)),
    properties=DIRECT_APPENDS,
    owner="data-platform",
)

ASSET = table_spec(
    TABLE,
    description=(
        "The steps of upkeep for each table, with planned and actual results. The next plan"
        " corrects its estimates by them, and skips rewrites that had no effect."
    ),
)
