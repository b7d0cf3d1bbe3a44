"""Publishing a blocked candidate on a user's decision."""

import dagster as dg

from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.publish_refused import Overridden, publish_refused
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.write.due_removals import finish_removals
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.metadata_keys import OverrideMetadata, WriteMetadata
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable


def publish(
    settings: Settings, engine: Engine, table: IcebergTable, run_id: str, *, by: str, why: str
) -> Overridden:
    """Publish a run's candidate despite its failed rules; the table and Dagster record the user
    and the reason. If a killed command published it before, complete the remaining steps.

    :raises UsageError: if there is no such candidate, or the table was written since.
    """
    published = publish_refused(engine, table, run_id, by=by, why=why)
    by, why = published.by, published.why
    override = OverrideMetadata(by=by, why=why, run_id=published.run_id)
    written = WriteMetadata(snapshot_id=published.snapshot_id, row_count=published.rows)
    publication = dg.AssetMaterialization(
        asset_key(table.name),
        description=f"Published against its rules by {by}: {why}",
        metadata=override.to_metadata() | written.to_metadata(),
        tags={"dagster/data_version": str(published.snapshot_id)},
    )
    with open_instance(settings) as instance:
        if not (published.is_again and _is_recorded(instance, published)):
            instance.report_runless_asset_event(publication)
    with table_lock(engine, table.name):
        finish_removals(engine, table, read_history(engine, table.name), write)
    return published


def _is_recorded(instance: dg.DagsterInstance, published: Overridden) -> bool:
    event = instance.get_latest_materialization_event(asset_key(published.table))
    known = event.asset_materialization if event else None
    if known is None:
        return False
    return OverrideMetadata.from_metadata(known.metadata).run_id == published.run_id
