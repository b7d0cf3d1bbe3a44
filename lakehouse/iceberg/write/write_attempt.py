"""One try at a write, as a value: where it is staged, what it started from, what it reads, and
what it decides again.
"""

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
"""What is told how many rows an append has staged, and which of the arriving `once_by` values the
table had already; it raises where that is wrong.
"""


@dataclass(frozen=True)
class Decided:
    """What a write decides again; empty where it reads only what nothing was
    decided of yet.
    """

    rows: "Sequence[DataFrame]" = ()
    """The rows of its sources that it looks at, where these keep theirs."""
    kept: "Sequence[DataFrame]" = ()
    """All rows of its sources, where any may be gone since the table was last computed."""
    everything: bool = False
    """Whether it looks at all that ever came."""
    partitions: Partitions | None = None
    """The partitions of which it looks at all rows, where nothing tells these from others."""
    rereads: bool = False
    """Whether it may read rows that were accepted before."""
    appended_anew: bool = False
    """Whether it may read again what an append refused, that knows its rows by other columns
    than those of the source.
    """
    all_appended_anew: bool = False
    """Whether a person has such an append look at all that ever came."""
    undone: "Sequence[DataFrame]" = ()
    """Rows that a run took out of the quarantine for a version of them, which it then did not
    publish.
    """

    @property
    def is_any(self) -> bool:
        """Whether a row may leave the quarantine at all."""
        return bool(
            self.rows or self.kept or self.everything or self.partitions or self.appended_anew
        )


@dataclass(frozen=True)
class Attempt:
    """One try at a write: its branch, what it branched off, and what it reads."""

    engine: Engine
    table: IcebergTable
    run: Run
    write_id: str
    base: Snapshot
    """The snapshot that the branch started at; that of an empty table has no rows."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """By table, the snapshot that the whole target is computed from once this is published."""
    since: Mapping[str, int] = field(default_factory=dict)
    """By table, the snapshot after which it was read for the run's partitions; none where they
    are computed in full.
    """
    withdrawn: Mapping[str, Withdrawn] = field(default_factory=dict)
    """By table, what rejections took out of it since the target was last computed."""
    decided: Decided = field(default_factory=Decided)
    """What this write decides again."""
    leaving: "list[DataFrame]" = field(default_factory=list)
    """Keys of rows of the quarantine that leave it, once this is published."""
    left_out: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """By table, the values of the rows that belonged to no partition as of the watermark."""
    reads_news_alone: bool = False
    """Whether only what came is computed, so that rows stay that earlier code computed."""

    look: "Callable[[Attempt], None] | None" = None
    """What looks at the rows once they are staged, of a write that publishes nothing."""
    keep: Keep = keep_on_one_machine
    """What keeps rows that are looked at more than once."""
    check_added: CheckAdded | None = None
    """What looks at how many rows an append of arriving values has staged."""
    given_rows: int | None = None
    """How many rows the frame has, where metadata tells: it is an input as it was read."""
    reads_keys: bool = False
    """Whether it computes the keys of which a row changed, where it does not compute all."""
    gives_keys_once: bool = False
    """Whether, of a merge's frame, the rows that the rules accept are known to have each key once:
    the newest of each was chosen.
    """

    @property
    def branch(self) -> str:
        """The branch that is written."""
        return audit_branch(self.write_id)

    @property
    def target(self) -> str:
        """The branch's quoted name in SQL."""
        return self.engine.catalog.sql_name(self.table.name, branch=self.branch)

    @property
    def snapshot_ids(self) -> dict[str, int | None]:
        """By table, the snapshot that is read of it; None of one that has none."""
        return {name: pin.snapshot_id for name, pin in by_table(self.pins.values()).items()}

    @property
    def properties(self) -> CommitProperties:
        """What the commits of this attempt say."""
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
            # What was appended stays whatever computes the next rows.
            code_version="" if isinstance(self.table.write, Append) else self.run.code_version,
            follows=self.run.follows,
            keeps_rows=self.keeps_rows,
        )

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stay that were there before, in the partitions that are written."""
        is_added_to = self.reads_news_alone or isinstance(self.table.write, Append)
        return is_added_to and not self.base.is_empty

    def history(self) -> History:
        """Read the table's snapshots and refs as they are now."""
        return read_history(self.engine, self.table.name)

    def existing(self) -> "DataFrame":
        """Return the rows that the branch started with."""
        return rows_at(self.engine, self.table.name, self.base.snapshot_id)
