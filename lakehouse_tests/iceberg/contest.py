"""Several processes, each with its own JVM, that write one table of each mode at once, while a
reader looks on.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
    write_contests,
)
from lakehouse_tests.processes import start

CONTESTS = {"one host": True, "many hosts": False}
"""Whether the writers share the tables' locks: those on one host do."""
_PAUSE_SECONDS = 0.5
Batches = Counter[tuple[int, int]]


@dataclass(frozen=True)
class Contest:
    """What is left after the writers are through, and how often the reader looked."""

    catalog: Catalog
    shares_locks: bool
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


def hold(
    folder: Path, names: Sequence[str] = tuple(CONTESTS), *, writers: int, rounds: int
) -> dict[str, Contest]:
    """Let the writers write, on one host and then each on its own or in one of these ways, and
    look on until they are through.
    """
    homes = {name: folder / name.replace(" ", "_") for name in names}
    contests = [
        {"home": str(home), "shares_locks": CONTESTS[name]} for name, home in homes.items()
    ]
    catalogs = {name: Catalog.of(Settings(home=home)) for name, home in homes.items()}
    children = [
        start(
            folder / "home",
            write_contests,
            writer=writer,
            writers=writers,
            rounds=rounds,
            contests=contests,
        )
        for writer in range(writers)
    ]
    looks: Counter[str] = Counter()
    try:
        while any(child.is_alive for child in children):
            looks.update(name for name, catalog in catalogs.items() if _look(catalog))
            time.sleep(_PAUSE_SECONDS)
        results = [child.result() for child in children]
    finally:
        for child in children:
            child.kill()
    tries = [
        sum((Counter(result[at]) for result in results), Counter()) for at in range(len(names))
    ]
    return {
        name: Contest(catalogs[name], CONTESTS[name], writers, rounds, tries[at], looks[name])
        for at, name in enumerate(names)
    }


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
    """See that writers that share locks never had to begin again, and those on hosts of their
    own did in each mode: the others would have shown nothing of it.
    """
    if contest.shares_locks:
        assert not any(contest.conflicts.values())
    else:
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
