"""Progress of the runs of one command, from their Dagster events."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.metadata_keys import WriteMetadata
from lakehouse.orchestration.partitions.pending_run import PendingRun

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


@dataclass(frozen=True)
class TableProgress:
    """Progress of a table: computed partitions, total partitions (0 without) and rows."""

    table: str
    done: int = 0
    partitions: int = 0
    rows: int = 0


class RunProgress:
    """Reports progress when a table starts or finishes.

    A run publishes all partitions of a table together, so they finish together.
    """

    def __init__(
        self,
        tables_of_steps: Mapping[str, str],
        on_progress: Callable[[TableProgress], object],
    ) -> None:
        """Start without runs.

        :param tables_of_steps: tables by the step keys of their assets.
        """
        self._tables_of_steps, self._on_progress = tables_of_steps, on_progress
        self.begin_stage(())

    def begin_stage(self, runs: Sequence[PendingRun]) -> None:
        """Start a stage of runs with disjoint partitions or tables."""
        self._partitions: Counter[str] = Counter()
        for run in runs:
            self._partitions.update(run.sizes)
        self._done: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._has_row_count = False

    def on_event(self, event: dg.DagsterEvent) -> None:
        """Handle an event of a run; events arrive in order."""
        table = self._tables_of_steps.get(event.step_key or "")
        if table is None:
            return
        if event.is_step_start:
            self._has_row_count = False
        elif event.is_step_materialization and event.asset_key:
            if table_name(event.asset_key) == table:
                self._count(table, event)
            return
        elif not event.is_step_success:
            return
        self._on_progress(self._progress(table))

    def _count(self, table: str, event: dg.DagsterEvent) -> None:
        self._done[table] += 1
        if self._has_row_count:
            return
        # Each materialization event of a run has the row count of all partitions.
        stored = event.step_materialization_data.materialization.metadata
        self._rows[table] += WriteMetadata.from_metadata(stored).nr_rows or 0
        self._has_row_count = True

    def _progress(self, table: str) -> TableProgress:
        partitions = self._partitions[table]
        done = min(self._done[table], partitions)
        return TableProgress(table, done, partitions, self._rows[table])


def tables_of_steps(graph: "AssetGraph") -> dict[str, str]:
    """Return the tables by the step keys of their assets."""
    keys = graph.executable_asset_keys
    return {graph.get(key).assets_def.node_def.name: table_name(key) for key in keys}
