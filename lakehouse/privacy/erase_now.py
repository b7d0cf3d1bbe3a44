"""Erasing at once: what has to be at rest for it, and what it costs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.errors import TableBusy
from lakehouse.iceberg.commit.branch import drop_dead_branches
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.erasure.remove_from_files import CostOfNow, cost_of_now
from lakehouse.iceberg.erasure.remove_unnamed import WAIT_SECONDS, refuse_where_written
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.orphaned_runs import fail_orphaned_runs
from lakehouse.privacy.erasable import Erasable
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from dagster import DagsterRun


@dataclass(frozen=True)
class CostOfErasure:
    """What it costs the tables that hold people when files go at once."""

    tables: tuple[CostOfNow, ...] = ()

    @property
    def snapshots(self) -> int:
        """How many past states can be read no more."""
        return sum(one.snapshots for one in self.tables)

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads in full the next time."""
        names = {reader for one in self.tables for reader in one.pinned_readers}
        return tuple(sorted(names))


def cost_of_erasure(erasable: Erasable) -> CostOfErasure:
    """Say what erasing at once costs the tables that hold people; no JVM."""
    costs = []
    for name in _tables(erasable):
        readers = erasable.readers.get(name, ())
        costs.append(cost_of_now(erasable.engine, name, readers))
    return CostOfErasure(tuple(costs))


def refuse_now(erasable: Erasable) -> None:
    """Refuse to erase at once where anything is being written.

    :raises TableBusy: names the run, or the table and the branch.
    """
    alive = alive_runs(erasable.settings)
    if alive:
        raise TableBusy(
            f"{len(alive)} runs of this home are alive, such as {alive[0].run_id} of"
            f" {alive[0].job_name}; expected none where files are removed at once.",
            next_step="Wait for their end, or leave out --now.",
        )
    for name in _tables(erasable):
        # A branch of a crashed run is no write under way.
        with table_lock(erasable.engine, name, WAIT_SECONDS) as log:
            drop_dead_branches(erasable.engine, name, log)
        refuse_where_written(erasable.engine, name)


def alive_runs(settings: Settings) -> "list[DagsterRun]":
    """Return the runs of a home that go on, or wait for their turn; none of a home without any."""
    if not (settings.dagster_home / "dagster.yaml").is_file():
        return []
    from dagster import DagsterRunStatus, RunsFilter

    status = DagsterRunStatus
    working = [
        status.QUEUED,
        status.NOT_STARTED,
        status.STARTING,
        status.STARTED,
        status.CANCELING,
    ]
    with open_instance(settings) as instance:
        fail_orphaned_runs(instance)
        records = instance.get_run_records(RunsFilter(statuses=working))
    return [record.dagster_run for record in records]


def _tables(erasable: Erasable) -> list[str]:
    names = {holder.table for subject in erasable.subjects for holder in subject.holders}
    return sorted(name for name in names if erasable.engine.catalog.has(name))
