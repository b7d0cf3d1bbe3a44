"""What the lakehouse uses of Dagster that Dagster does not call public; all but the storage of
events, which is in `event_log`.

`test_dagster_internals.py` fails where another version than `LOOKED_AT` is installed. Then look
whether each of these is still there and does the same, or has become public, run that test, and
set the version.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from dagster._core.definitions.assets.graph.asset_graph import AssetGraph as AssetGraph

LOOKED_AT = "1.13.27"
NO_COMPUTE_LOGS = {
    "module": "dagster._core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}
"""Configuration of an instance that leaves the output of steps on the terminal; catching it for
the UI would start two processes for each step.
"""


def latest_check_executions(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]
) -> Mapping[dg.AssetCheckKey, Any]:
    """Return the last execution of each check: one query for all, where the public summary is
    one for each.
    """
    return instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)


def check_executions(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey, limit: int
) -> Sequence[Any]:
    """Return the last executions of a check, the newest first."""
    return instance.event_log_storage.get_asset_check_execution_history(key, limit=limit)


def check_summaries(
    instance: dg.DagsterInstance, keys: Iterable[dg.AssetCheckKey]
) -> Mapping[dg.AssetCheckKey, Any]:
    """Return what is known of the last execution of each check, with its event."""
    return instance.event_log_storage.get_asset_check_summary_records(list(keys))


def free_slots(instance: dg.DagsterInstance, run_id: str) -> None:
    """Free the slots of pools that a run holds."""
    instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def is_of_one_host(instance: dg.DagsterInstance) -> bool:
    """Whether all runs are of this host: a folder of SQLite files is of one, a database server
    is not.
    """
    from dagster._core.storage.event_log import SqliteEventLogStorage

    return isinstance(instance.event_log_storage, SqliteEventLogStorage)


def set_data_version(context: dg.OutputContext, version: str) -> None:
    """Give the asset of an output its data version; an IO manager has no public way to."""
    context.step_context.set_data_version(context.asset_key, dg.DataVersion(version))
