"""`monitoring.table_health`: the health of each table over time."""

from lakehouse.iceberg.write.append_without_spark import DIRECT_APPENDS
from lakehouse.orchestration.asset_specs import table_spec
from lakehouse.tables.table import Append, Column, IcebergTable

# One row per table with all metrics, instead of one row per metric: they are measured together,
# and typical questions combine several (files per snapshot, deleted rows per delete file)
# without a join. A new metric becomes a column.
TABLE = IcebergTable(
    name="monitoring.table_health",
    comment="How healthy each table was, one row for each at each time of measuring.",
    columns=[
        Column("table_name", "string", "The table that was measured.", required=True),
        Column("measured_at", "timestamp", "When it was measured.", required=True),
        Column("snapshot_id", "bigint", "The snapshot that readers saw then."),
        Column("rows", "bigint", "Rows in data files; deleted_rows are still among them."),
        Column("partitions", "bigint", "Partitions that have files."),
        Column(
            "partitions_with_small_files", "bigint", "Those where joining files spares some."
        ),
        Column("partitions_with_deletes", "bigint", "Those that have delete files."),
        Column("data_files", "bigint", "Data files."),
        Column("data_bytes", "bigint", "Their size."),
        Column("small_files", "bigint", "Those below three quarters of the target size."),
        Column("small_file_share", "double", "Share of the data files that are small, 0 to 1."),
        Column("fewer_files", "bigint", "Files that joining the small ones would spare."),
        Column(
            "p10_file_bytes", "bigint", "Size that a tenth of the data files do not exceed."
        ),
        Column("median_file_bytes", "bigint", "Size that half of them do not exceed."),
        Column("p90_file_bytes", "bigint", "Size that nine tenths of them do not exceed."),
        Column("files_of_old_specs", "bigint", "Data files of a former partitioning."),
        Column("delete_files", "bigint", "Delete files; each deletion vector is one."),
        Column("dangling_delete_files", "bigint", "Those that delete from no file there is."),
        Column("deleted_rows", "bigint", "Rows in data files that delete files take off."),
        Column("deleted_row_share", "double", "Share of the rows that they are, 0 to 1."),
        Column("snapshots", "bigint", "Snapshots that are kept."),
        Column("oldest_snapshot_days", "double", "Age of the oldest of them in days."),
        Column(
            "pins", "bigint", "Branches, tags, readers and restore points that need old ones."
        ),
        Column("manifests", "bigint", "Manifests that a read opens at most."),
        Column("metadata_json_bytes", "bigint", "Size of the current metadata.json."),
        Column("metadata_bytes", "bigint", "Size of all files in the metadata folder."),
        Column("metadata_share", "double", "That size as a share of data_bytes."),
        Column("lost_metadata_files", "bigint", "metadata.json files that no log names."),
        Column("branches", "bigint", "Branches but main."),
        Column("audit_branches", "bigint", "Those of writes that go on, or whose writer died."),
        Column("refused_branches", "bigint", "Those that keep a blocked candidate."),
        Column("tags", "bigint", "Tags."),
        Column(
            "run_id",
            "string",
            "What it was measured for: a Dagster run, or another occasion.",
            required=True,
        ),
    ],
    write=Append(once_by=("run_id",)),
    properties=DIRECT_APPENDS,
    owner="data-platform",
)

ASSET = table_spec(
    TABLE,
    description=(
        "The health of each table over time, from its metadata: files and small files,"
        " deletes, snapshots, manifests, branches. One row per table, all in one append; each"
        " table shows its own metrics as observations."
    ),
)
