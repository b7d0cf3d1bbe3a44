"""Dry run of a write: rows are staged and audited, then dropped; main stays unchanged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from lakehouse.errors import PendingChanges
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_events import NO_LISTENER
from lakehouse.iceberg.values.write_result import Outcome, Unchanged
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.iceberg.write.write_audit_publish import Publisher, write
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def preview(
    engine: Engine,
    table: IcebergTable,
    compute: "Callable[..., DataFrame]",
    inputs: Mapping[str, Input],
    run: Run,
    look: Callable[[str], None],
    *,
    suppression: SuppressionList = NO_SUPPRESSION,
) -> Outcome:
    """Do everything of a write except the publish, and drop its branch, also after an interrupt.

    Rejected rows are counted, and the quarantine is not changed. Other writers of the table
    wait meanwhile. Upkeep removes the staged files, like those of a blocked write.

    :param look: called with the branch name after the audit; not called if no row would change.
    :returns: the outcome; its snapshot no longer exists.
    :raises PendingChanges: if the table must be changed first; names the changes.
    """
    for declared in (table, table.quarantine):
        if declared:
            _check_as_declared(engine, declared)
    return write(
        engine, table, compute, inputs, run, suppression=suppression, driver=_Preview(look=look)
    )


@dataclass(frozen=True, kw_only=True)
class _Preview(Publisher):
    """Shows the staged candidate of a write, and changes nothing."""

    look: Callable[[str], None]
    drops_interrupted: ClassVar[bool] = True

    def prepare(self, *_: object) -> None:
        pass

    def begin(self, *_: object) -> None:
        pass

    def reporting(self, engine: Engine) -> Engine:
        return replace(engine, listener=NO_LISTENER)

    def write_quarantine(
        self, engine: Engine, table: IcebergTable, *_: object, **__: object
    ) -> Outcome:
        main = read_history(engine, table.name).main
        return Unchanged(table.name, "", main.snapshot_id if main else None)

    def publish(self, attempt: Attempt) -> None:
        self.look(attempt.branch)

    def block(self, attempt: Attempt, candidate_id: int) -> str:  # noqa: ARG002
        self.look(attempt.branch)
        return ""

    def leave_unchanged(self, attempt: Attempt) -> None:
        pass

    def remove_from_quarantine(self, *_: object) -> None:
        pass


def _check_as_declared(engine: Engine, table: IcebergTable) -> None:
    planned = planning.plan_now(engine, table)
    changes = [
        step.description for step in planned.steps if step.automatic or step.blocks_writes
    ]
    changes += map(str, planned.denied)
    if changes:
        raise PendingChanges(
            f"{table.name} does not match its declaration: {'; '.join(changes)}. A preview"
            " changes no table.",
            next_step="Make the changes with `lakehouse apply`, or use `lakehouse try`.",
        )
