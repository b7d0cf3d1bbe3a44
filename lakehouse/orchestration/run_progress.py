"""How far the runs of one call are: told by their events, table by table."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.orchestration.pending_run import PendingRun

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


@dataclass(frozen=True)
class TableProgress:
    """How far a table is: how many of its partitions are computed of all that are to be, the rows
    that it got by that, and how long the rest takes at the pace so far.

    `partitions` is 0 of a table that has none. `seconds_left` is of all tables that are computed
    with it, and None as long as nothing of them is done.
    """

    table: str
    done: int = 0
    partitions: int = 0
    rows: int = 0
    seconds_left: float | None = None


class RunProgress:
    """Tells how far the runs of a call are, whenever a table is begun or done.

    A table's partitions of one run are published together, and so done together.
    """

    def __init__(
        self,
        tables_of_steps: Mapping[str, str],
        told: Callable[[TableProgress], object],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Watch nothing yet.

        :param tables_of_steps: the assets' tables by the keys of the steps that compute them.
        """
        self._tables_of_steps, self._told, self._clock = tables_of_steps, told, clock
        self.begin_stage(())

    def begin_stage(self, runs: Sequence[PendingRun]) -> None:
        """Begin with runs of which each computes other partitions, or other tables."""
        self._began_at = self._clock()
        self._partitions: Counter[str] = Counter()
        self._steps = 0
        for run in runs:
            self._partitions.update(run.sizes)
            self._steps += sum(run.sizes.get(table, 1) for table in run.tables)
        self._done: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._is_counted = False

    def on_event(self, event: dg.DagsterEvent) -> None:
        """Take note of an event of a run, in the order of the events."""
        table = self._tables_of_steps.get(event.step_key or "")
        if table is None:
            return
        if event.is_step_start:
            self._is_counted = False
        elif event.is_step_materialization and event.asset_key:
            if table_name(event.asset_key) == table:
                self._count(table, event)
            return
        elif not event.is_step_success:
            return
        self._told(self._progress(table))

    def _count(self, table: str, event: dg.DagsterEvent) -> None:
        self._done[table] += 1
        if self._is_counted:
            return
        # Each partition of a run says what all of them got.
        stored = event.step_materialization_data.materialization.metadata
        self._rows[table] += WriteMetadata.from_metadata(stored).nr_rows or 0
        self._is_counted = True

    def _progress(self, table: str) -> TableProgress:
        steps_done, partitions = self._done.total(), self._partitions[table]
        seconds_left = None
        if steps_done:
            pace = (self._clock() - self._began_at) / steps_done
            seconds_left = pace * max(self._steps - steps_done, 0)
        done = min(self._done[table], partitions)
        return TableProgress(table, done, partitions, self._rows[table], seconds_left)


def tables_of_steps(graph: "AssetGraph") -> dict[str, str]:
    """Return the assets' tables by the keys of the steps that compute them."""
    keys = graph.executable_asset_keys
    return {graph.get(key).assets_def.node_def.name: table_name(key) for key in keys}
