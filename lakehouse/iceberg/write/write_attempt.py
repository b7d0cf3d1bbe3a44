"""One attempt of a write, as a value: its branch, base, inputs, and reevaluated rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.commit.branch import audit_branch
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.value_ranges import text
from lakehouse.iceberg.metadata.write_context import Partitions, Run
from lakehouse.iceberg.metadata.write_result import Pin, by_table
from lakehouse.iceberg.read.snapshot_rows import rows_at
from lakehouse.iceberg.read.withdrawn_deliveries import Withdrawn
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.tables.table import Append, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CheckAdded = Callable[[int, Collection[tuple[Any, ...]]], object]
"""Called with the number of rows that an append has staged, and the arriving `once_by` values
that existed already; raises if they are wrong.
"""


@dataclass(frozen=True)
class Decided:
    """Rows that a write evaluates again; empty if it only reads new rows."""

    rows: "Sequence[DataFrame]" = ()
    """Rows of its sources that it reads, if they have source columns."""
    kept: "Sequence[DataFrame]" = ()
    """All rows of its sources, if some can have been removed since the last run."""
    everything: bool = False
    """Whether it reads all rows that ever arrived."""
    partitions: Partitions | None = None
    """Partitions that it reads in full, if rows cannot be matched individually."""
    rereads: bool = False
    """Whether it can read rows that were accepted before."""
    appended_anew: bool = False
    """Whether it can read rows again that an append rejected, whose key is not the source."""
    all_appended_anew: bool = False
    """Whether a user requested a full read for such an append."""
    undone: "Sequence[DataFrame]" = ()
    """Rows that an unpublished run removed from the quarantine because of a newer version."""

    @property
    def is_any(self) -> bool:
        """Whether any row can leave the quarantine."""
        return bool(
            self.rows or self.kept or self.everything or self.partitions or self.appended_anew
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt of a write: its branch, base snapshot and inputs."""

    engine: Engine
    table: IcebergTable
    run: Run
    write_id: str
    base: Snapshot
    """The start snapshot of the branch; the one of an empty table has no rows."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """By table, the snapshot that the entire target is computed from after the publish."""
    since: Mapping[str, int] = field(default_factory=dict)
    """By table, the start snapshot of an incremental read for the run's partitions."""
    withdrawn: Mapping[str, Withdrawn] = field(default_factory=dict)
    """By table, the withdrawn deliveries since the target was last computed."""
    decided: Decided = field(default_factory=Decided)
    """The rows that this write evaluates again."""
    leaving: "list[DataFrame]" = field(default_factory=list)
    """Keys of rows that leave the quarantine after the publish."""
    left_out: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """By table, the values of the rows in no partition as of the watermark."""
    reads_news_alone: bool = False
    """Whether only new rows are computed, so that rows of earlier code versions remain."""

    look: "Callable[[Attempt], None] | None" = None
    """For a dry run: called with the attempt after rows are staged."""
    keep: Keep = keep_on_one_machine
    """Caches rows that are used several times."""
    check_added: CheckAdded | None = None
    """Checks the number of rows that an append of arriving values has staged."""
    given_rows: int | None = None
    """Number of rows if known from metadata: the function returned an input unchanged."""
    reads_keys: bool = False
    """Whether it computes only changed keys, instead of all."""
    gives_keys_once: bool = False
    """Whether accepted rows of a merge are known to have unique keys, since the newest were
    selected.
    """

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
        return {name: pin.snapshot_id for name, pin in by_table(self.pins.values()).items()}

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
            inputs=self.watermarks,
            declaration=self.table.declaration_hash,
            read=read if partitions else {},
            since=self.since,
            spans=(
                tuple((text(low), text(high)) for low, high in partitions.spans)
                if partitions
                else ()
            ),
            takes_out=bool(self.withdrawn),
            left_out=self.left_out,
            # Appended rows remain when the code changes.
            code_version="" if isinstance(self.table.write, Append) else self.run.code_version,
            follows=self.run.follows,
            keeps_rows=self.keeps_rows,
        )

    @property
    def keeps_rows(self) -> bool:
        """Whether existing rows remain in the written partitions."""
        is_added_to = self.reads_news_alone or isinstance(self.table.write, Append)
        return is_added_to and not self.base.is_empty

    def history(self) -> History:
        """Read the table's current snapshots and refs."""
        return read_history(self.engine, self.table.name)

    def existing(self) -> "DataFrame":
        """Return the rows at the start of the branch."""
        return rows_at(self.engine, self.table.name, self.base.snapshot_id)
