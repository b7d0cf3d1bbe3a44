"""Several processes, each with its own JVM, that write one table of each mode at once, while a
reader looks on.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.contention import (
    APPENDED,
    BATCH_ROWS,
    COUNTED,
    OVERWRITTEN,
    PARTITIONED,
    SHARED_KEY,
    TABLES,
    write_rounds,
)
from lakehouse_tests.processes import start

_PAUSE_SECONDS = 0.5
Batches = Counter[tuple[int, int]]


@dataclass(frozen=True)
class Contest:
    """What is left after the writers are through, and how often the reader looked."""

    catalog: Catalog
    writers: int
    rounds: int
    tries: Mapping[str, int]
    """How many attempts the writes to each table took."""
    looks: int

    @property
    def conflicts(self) -> dict[str, int]:
        """How often a writer of each table had to begin again."""
        return {
            table.name: self.tries[table.name] - self.writers * self.rounds for table in TABLES
        }

    @property
    def all_batches(self) -> Batches:
        """Every batch that was written, whole."""
        return Counter(
            {
                (writer, batch): BATCH_ROWS
                for writer in range(self.writers)
                for batch in range(self.rounds)
            }
        )


def hold(folder: Path, *, writers: int, rounds: int) -> Contest:
    """Let the writers write, each as on a host of its own, and read until they are through."""
    home = folder / "shared"
    catalog = Catalog.of(Settings(home=home))
    children = [
        start(
            folder / "home",
            write_rounds,
            writer=writer,
            writers=writers,
            rounds=rounds,
            shared_home=str(home),
        )
        for writer in range(writers)
    ]
    looks = 0
    try:
        while any(child.is_alive for child in children):
            looks += _look(catalog)
            time.sleep(_PAUSE_SECONDS)
        results = [child.result() for child in children]
    finally:
        for child in children:
            child.kill()
    tries = sum(map(Counter, results), Counter[str]())
    return Contest(catalog, writers, rounds, tries, looks)


def _look(catalog: Catalog) -> bool:
    """Read each table as readers without a JVM do, and see that it is in a whole state."""
    found = [_look_at(catalog, name, check) for name, check in _CHECKS.items()]
    return any(found)


def _look_at(catalog: Catalog, name: str, check: Callable[[list[dict]], None]) -> bool:
    if not catalog.has(name):
        return False
    check(_rows(catalog.load(name)))
    return True


def _see_whole_batches(rows: list[dict]) -> None:
    assert set(_batches(rows).values()) <= {BATCH_ROWS}, "a batch was seen in part, or twice"
    assert {row["n"] for row in rows} <= set(range(BATCH_ROWS)), (
        "rows were seen that the rules refuse"
    )


def _see_whole_partitions(rows: list[dict]) -> None:
    batches = _batches(rows)
    assert set(batches.values()) <= {BATCH_ROWS}, "a partition was seen in part"
    assert len({writer for writer, _ in batches}) == len(batches), (
        "a partition was seen with two batches"
    )


def _see_a_right_count(rows: list[dict]) -> None:
    counts = {row["key"]: row["count"] for row in rows}
    shared = counts.pop(SHARED_KEY, 0)
    assert len(counts) == shared * BATCH_ROWS, "a merge was seen in part, or a count was lost"


_CHECKS = {
    APPENDED.name: _see_whole_batches,
    OVERWRITTEN.name: _see_whole_batches,
    PARTITIONED.name: _see_whole_partitions,
    COUNTED.name: _see_a_right_count,
}


def _rows(table: Table) -> list[dict]:
    return table.scan().to_arrow().to_pylist()


def _batches(rows: list[dict]) -> Batches:
    return Counter((row["writer"], row["batch"]) for row in rows)


def check_rows(contest: Contest) -> None:
    """See that each row that was written is there, once."""
    rows = {table.name: _rows(contest.catalog.load(table.name)) for table in TABLES}
    assert _batches(rows[APPENDED.name]) == contest.all_batches
    assert _batches(rows[OVERWRITTEN.name]) == contest.all_batches
    last = {(writer, contest.rounds - 1): BATCH_ROWS for writer in range(contest.writers)}
    assert _batches(rows[PARTITIONED.name]) == last
    keys = {
        f"{writer}-{batch}-{n}": 1
        for writer, batch in contest.all_batches
        for n in range(BATCH_ROWS)
    }
    assert len(rows[COUNTED.name]) == len(keys) + 1
    shared = contest.writers * contest.rounds
    assert {row["key"]: row["count"] for row in rows[COUNTED.name]} == keys | {
        SHARED_KEY: shared
    }


def check_history(contest: Contest) -> None:
    """See that main went from each snapshot to its child, once for each write, and that no
    branch is left.
    """
    for table in TABLES:
        metadata = contest.catalog.load(table.name).metadata
        shown = [entry.snapshot_id for entry in metadata.snapshot_log]
        steps = [(_written_on(metadata, child), main) for main, child in pairwise(shown)]
        assert all(parent == main for parent, main in steps), (
            f"{table.name}: parent and main before it: {steps}"
        )
        assert len(shown) == contest.writers * contest.rounds
        assert not [ref for ref in metadata.refs if ref.startswith("audit_")]


def check_conflicts(contest: Contest) -> None:
    """See that writers had to begin again in each mode: else the others show nothing."""
    assert all(contest.conflicts.values())


def _written_on(metadata: TableMetadata, snapshot_id: int) -> int | None:
    """Return the state of main that a snapshot was written on.

    CREATE BRANCH commits an empty snapshot for the branch where it saw a table without any, and
    main may have got its first one in between.
    """
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    parent = snapshots[snapshot_id].parent_snapshot_id
    while parent in snapshots and "added-records" not in _summary(snapshots[parent]):
        parent = snapshots[parent].parent_snapshot_id
    return parent


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}
