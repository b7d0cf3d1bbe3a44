"""The health of a table as numbers by name, for its row and for Dagster's plots."""

from collections.abc import Mapping
from datetime import timedelta

from lakehouse.iceberg.commit.branch import is_audit, is_refused
from lakehouse.iceberg.metadata.measured_health import TableHealth

Figures = Mapping[str, int | float | None]


def health_figures(health: TableHealth) -> Figures:
    """Return the numbers of a table's health by the columns of `monitoring.table_health`; None
    where there is nothing to measure.
    """
    branches = [ref.name for ref in health.refs if ref.is_branch]
    lost = health.lost_metadata_files
    return {
        "rows": health.rows,
        **_partition_figures(health),
        **_file_figures(health),
        "delete_files": health.delete_files,
        "dangling_delete_files": health.dangling_delete_files,
        "deleted_rows": health.deleted_rows,
        "deleted_row_share": health.deleted_row_share,
        "snapshots": len(health.snapshot_times),
        "oldest_snapshot_days": _oldest_days(health),
        "pins": len(health.pins),
        "manifests": health.manifests,
        "metadata_json_bytes": health.metadata_json_bytes,
        "metadata_bytes": health.metadata_bytes,
        "metadata_share": _metadata_share(health),
        "lost_metadata_files": None if lost is None else len(lost),
        "branches": len(branches),
        "audit_branches": len(list(filter(is_audit, branches))),
        "refused_branches": len(list(filter(is_refused, branches))),
        "tags": len(health.refs) - len(branches),
    }


def _partition_figures(health: TableHealth) -> Figures:
    with_small, with_deletes = 0, 0
    for partition in health.partitions:
        with_small += partition.fewer_files(health.target_bytes) > 0
        with_deletes += partition.delete_files > 0
    return {
        "partitions": len(health.partitions),
        "partitions_with_small_files": with_small,
        "partitions_with_deletes": with_deletes,
    }


def _file_figures(health: TableHealth) -> Figures:
    sizes = health.file_sizes
    return {
        "data_files": health.data_files,
        "data_bytes": health.data_bytes,
        "small_files": health.small_files,
        "small_file_share": health.small_file_share,
        "fewer_files": health.fewer_files,
        "p10_file_bytes": sizes.get("p10"),
        "median_file_bytes": sizes.get("median"),
        "p90_file_bytes": sizes.get("p90"),
        "files_of_old_specs": health.files_of_old_specs,
    }


def _oldest_days(health: TableHealth) -> float | None:
    if not health.snapshot_times:
        return None
    return (health.measured_at - health.snapshot_times[0]) / timedelta(days=1)


def _metadata_share(health: TableHealth) -> float | None:
    if health.metadata_bytes is None or not health.data_bytes:
        return None
    return health.metadata_bytes / health.data_bytes
