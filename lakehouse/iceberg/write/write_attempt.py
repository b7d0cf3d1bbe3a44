"""The values that the steps of a write pass on: request, fence, and attempt."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import audit_branch
from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read, read_main, rows_at
from lakehouse.iceberg.read.rows_outside_partitions import OutsidePartitions
from lakehouse.iceberg.read.withdrawn_deliveries import Withdrawn
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot, evaluable
from lakehouse.iceberg.rules.evaluation import evaluate_snapshot
from lakehouse.iceberg.values.value_ranges import text
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome, Pin, RuleResult, by_table
from lakehouse.iceberg.write.kept_rows import Keep
from lakehouse.tables.rule import castable_if_fits
from lakehouse.tables.table import Append, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Compute = Callable[..., "DataFrame"]
Write = Callable[..., Outcome]
"""The function `write`, as the steps call it for the quarantine table."""


@dataclass(frozen=True)
class WriteRequest:
    """A write as requested; the same for all of its attempts."""

    engine: Engine
    table: IcebergTable
    compute: Compute
    """Returns the rows from the DataFrames of the inputs; not filtered by the suppression list."""
    inputs: Mapping[str, Input]
    run: Run
    suppression: SuppressionList
    keep: Keep
    """Caches rows that are used several times."""
    arriving: Sequence[tuple[Any, ...]] | None = None
    """The `once_by` values of an append, if the caller knows them."""

    @property
    def reads_keys(self) -> bool:
        """Whether it computes only changed keys, instead of all."""
        return any(read.mode == "changed_keys" for read in self.inputs.values())


@dataclass(frozen=True)
class Fence:
    """The audit branch of an attempt, and the inputs that were pinned after its creation."""

    base: Snapshot
    """The start snapshot of the branch; the one of an empty table has no rows."""
    pins: Mapping[str, Pin]
    watermarks: Mapping[str, int]
    """By table, the snapshot that the entire target is computed from after the publish."""
    since: Mapping[str, int]
    """By table, the start snapshot of an incremental read for the run's partitions."""
    withdrawn: Mapping[str, Withdrawn]
    """By table, the withdrawn deliveries since the target was last computed."""
    outside: Sequence[OutsidePartitions]
    """Rows of the inputs that are in no partition."""
    outside_values: Mapping[str, tuple[str | None, ...]]
    """By table, the values of the rows in no partition as of the watermark."""
    is_incremental: bool
    """Whether only new rows are computed, so that rows of earlier code versions remain."""


@dataclass(frozen=True)
class ReevaluationScope:
    """Rows that a write evaluates again; empty if it only reads new rows."""

    rows: "Sequence[DataFrame]" = ()
    """Rows of its sources that it reads, if they have source columns."""
    kept: "Sequence[DataFrame]" = ()
    """All rows of its sources, if some can have been removed since the last run."""
    is_complete: bool = False
    """Whether it reads all rows that ever arrived."""
    partitions: Partitions | None = None
    """Partitions that it reads in full, if rows cannot be matched individually."""
    reads_existing: bool = False
    """Whether it can read rows that were accepted before."""
    reads_append: bool = False
    """Whether it can read rows again that an append rejected, whose key is not the source."""
    reads_append_in_full: bool = False
    """Whether a user requested a full read for such an append."""

    @property
    def is_any(self) -> bool:
        """Whether any row can leave the quarantine."""
        return bool(
            self.rows or self.kept or self.is_complete or self.partitions or self.reads_append
        )


class CandidateDriver(Protocol):
    """Decides what becomes of an audited candidate; see `Publisher`."""

    def write_quarantine(
        self, engine: Engine, table: IcebergTable, *args: Any, **kwargs: Any
    ) -> Outcome: ...

    def publish(self, attempt: "Attempt") -> None: ...

    def block(self, attempt: "Attempt", candidate_id: int) -> str: ...


@dataclass(frozen=True)
class Attempt:
    """One attempt of a write, after its rows were computed."""

    request: WriteRequest
    driver: CandidateDriver
    write_id: str
    number: int
    fence: Fence
    table: IcebergTable
    """The requested table, with the rules that its rows imply."""
    scope: ReevaluationScope
    """The rows that this write evaluates again."""
    removals: "list[DataFrame]"
    """Keys of rows that leave the quarantine after the publish."""

    @property
    def engine(self) -> Engine:
        """The engine of the request."""
        return self.request.engine

    @property
    def run(self) -> Run:
        """The run of the request."""
        return self.request.run

    @property
    def base(self) -> Snapshot:
        """The start snapshot of the branch."""
        return self.fence.base

    def head(self) -> Snapshot:
        """Read the current snapshot of the branch."""
        head = self.history().head(self.branch)
        assert head is not None
        return head

    def based_on_head(self) -> "Attempt":
        """Return the attempt that continues from the current snapshot of its branch."""
        return replace(self, fence=replace(self.fence, base=self.head()))

    @property
    def branch(self) -> str:
        """Name of the branch."""
        return audit_branch(self.write_id)

    @property
    def target(self) -> str:
        """Quoted SQL name of the branch."""
        return self.engine.catalog.sql_name(self.table.name, branch=self.branch)

    @property
    def snapshot_ids(self) -> dict[str, int | None]:
        """By table, the pinned snapshot; None if it has none."""
        return {
            name: pin.snapshot_id for name, pin in by_table(self.fence.pins.values()).items()
        }

    @property
    def properties(self) -> CommitProperties:
        """The commit properties of this attempt."""
        partitions = self.run.partitions
        read = {
            name: snapshot_id
            for name, snapshot_id in self.snapshot_ids.items()
            if snapshot_id and name != self.table.name
        }
        return CommitProperties(
            kind="write",
            write_id=self.write_id,
            run_id=self.run.run_id,
            partitions=self.run.partition_values,
            inputs=self.fence.watermarks,
            declaration=self.table.declaration_hash,
            read=read if partitions else {},
            since=self.fence.since,
            merged_ranges=(
                tuple((text(low), text(high)) for low, high in partitions.merged_ranges)
                if partitions
                else ()
            ),
            takes_out=bool(self.fence.withdrawn),
            outside_partitions=self.fence.outside_values,
            # Appended rows remain when the code changes.
            code_version="" if isinstance(self.table.write, Append) else self.run.code_version,
            follows=self.run.follows,
            keeps_rows=self.keeps_rows,
        )

    @property
    def keeps_rows(self) -> bool:
        """Whether existing rows remain in the written partitions."""
        is_added_to = self.fence.is_incremental or isinstance(self.table.write, Append)
        return is_added_to and not self.base.is_empty

    def history(self) -> History:
        """Read the table's current snapshots and refs."""
        return read_history(self.engine, self.table.name)

    def existing(self) -> "DataFrame":
        """Return the rows at the start of the branch."""
        return rows_at(self.engine, self.table.name, self.base.snapshot_id)


def with_fitting_rules(table: IcebergTable, columns: Sequence[str]) -> IcebergTable:
    """Add a rule for each column whose values may not fit, if there is a quarantine."""
    if not table.quarantining_rules:
        return table
    rules = [
        castable_if_fits(name, table.column(name).type)
        for name in columns
        if name not in table.casts
    ]
    return replace(table, rules=(*table.rules, *rules)) if rules else table


def evaluate_prepared(attempt: Attempt) -> list[RuleResult]:
    """Evaluate the rules that need metadata or metrics of other tables."""
    rules = evaluable(attempt.table.rules)
    if all(rule.reads_rows for rule in rules):
        return []
    history = attempt.history()
    evaluated = EvaluatedSnapshot(
        attempt.engine,
        attempt.table,
        history,
        history.head(attempt.branch),
        attempt.snapshot_ids,
        attempt.run.partitions,
    )
    return evaluate_snapshot(evaluated, rules)


def other_table_reader(attempt: Attempt) -> "Callable[[str], DataFrame]":
    """Return a function that reads another table as pinned by the write, or current.

    The table itself is read from the branch, so that rows can reference rows of the same write.
    """
    pins = attempt.snapshot_ids

    def read_other(name: str) -> "DataFrame":
        if name == attempt.table.name:
            return read(attempt.engine, Pin(name, attempt.history().refs[attempt.branch]))
        return (
            read(attempt.engine, Pin(name, pins[name]))
            if name in pins
            else read_main(attempt.engine, name)
        )

    return read_other
