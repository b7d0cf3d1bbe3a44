"""Writers and upkeep at once: no writer fails, and no row is lost or doubled."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse.upkeep.compaction import compact
from lakehouse.upkeep.manifest_rewrite import rewrite_manifests
from lakehouse.upkeep.stale_branches import drop_stale_branches
from lakehouse_tests.conftest import on_embedded_alone
from lakehouse_tests.frames import frame_of
from lakehouse_tests.iceberg.upkeep.tables import TARGET_BYTES

APPENDED = IcebergTable(
    name="bronze.appended_under_upkeep",
    comment="Each write adds a number.",
    columns=[Column("number", "bigint")],
    write=Append(once_by=()),
)
MERGED = IcebergTable(
    name="silver.merged_under_upkeep",
    comment="Each write adds a number, and sets the count that all share.",
    columns=[Column("number", "bigint"), Column("count", "bigint")],
    write=Merge(on=["number"]),
)
_LONGEST_WRITE = timedelta(seconds=60)
_SECONDS, _LONGEST_SECONDS = 4, 600
_REST_SECONDS = 0.3
Write = Callable[[Engine, int], Published]


def append_one(engine: Engine, number: int) -> Published:
    return _published(engine, APPENDED, [(number,)], "number bigint")


def merge_one(engine: Engine, number: int) -> Published:
    """Add a number, and set the row that all merges change."""
    rows = [(number + 2, 0), (0, number)]
    return _published(engine, MERGED, rows, "number bigint, count bigint")


def _published(engine: Engine, table: IcebergTable, rows: list, schema: str) -> Published:
    done = write(engine, table, lambda: frame_of(engine.spark, schema, rows))
    assert isinstance(done, Published), done
    return done


@dataclass
class Writer:
    """A thread that writes one table until it is stopped."""

    engine: Engine
    write: Write
    stop: Event = field(default_factory=Event)
    tries: list[int] = field(default_factory=list)
    """How many attempts each write took."""
    errors: list[BaseException] = field(default_factory=list)

    def start(self) -> Thread:
        thread = Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    @property
    def conflicts(self) -> int:
        return sum(self.tries) - len(self.tries)

    def _run(self) -> None:
        try:
            while not self.stop.is_set():
                self.tries.append(self.write(self.engine, len(self.tries)).attempts)
                # Upkeep only tries the lock, so a writer that never rests keeps it out.
                time.sleep(_REST_SECONDS)
        except BaseException as error:
            self.errors.append(error)


IsEnough = Callable[[list[StepResult], list[Writer]], bool]


def upkeep_once(engine: Engine, table: str) -> Iterator[StepResult]:
    """Do the steps that change metadata, with a retention that no write outlasts."""
    older_than = datetime.now(UTC) - _LONGEST_WRITE
    yield compact(engine, table, target_bytes=TARGET_BYTES)
    yield drop_stale_branches(engine, table, blocked_before=older_than)
    yield expire_snapshots(engine, table, older_than=older_than, keep=3)
    yield rewrite_manifests(engine, table)


def checksums(engine: Engine) -> list[tuple]:
    name = engine.catalog.sql_name(MERGED.name)
    snapshot_id = read_history(engine, MERGED.name).refs["month_end"]
    sums = []
    for version in ("'month_end'", "'experiment'", snapshot_id):
        query = f"SELECT count(*), sum(hash(*)) FROM {name} VERSION AS OF {version}"
        sums.append(tuple(engine.sql(query).collect()[0]))
    return sums


def run_together(
    engine: Engine, upkeep: Engine, is_enough: IsEnough
) -> tuple[list[StepResult], list[Writer]]:
    """Write and keep up at once until it is enough."""
    for table, write_one in ((APPENDED, append_one), (MERGED, merge_one)):
        write_one(engine, -1)
        name = engine.catalog.sql_name(table.name)
        engine.sql(f"ALTER TABLE {name} CREATE TAG month_end")
        engine.sql(f"ALTER TABLE {name} CREATE BRANCH experiment")
    expected = checksums(engine)
    writers = [Writer(engine, append_one), Writer(engine, merge_one)]
    results: list[StepResult] = []
    threads = [writer.start() for writer in writers]
    try:
        while not is_enough(results, writers):
            for table in (APPENDED, MERGED):
                results += upkeep_once(upkeep, table.name)
            assert checksums(engine) == expected
    finally:
        for writer, thread in zip(writers, threads, strict=True):
            writer.stop.set()
            thread.join()
    return results, writers


def check(engine: Engine, results: list[StepResult], writers: list[Writer]) -> None:
    """See that each write is there, once, and that upkeep did what it could."""
    assert [error for writer in writers for error in writer.errors] == []
    appended, merged = (len(writer.tries) for writer in writers)
    assert appended > 1
    assert merged > 1
    numbers = _column(engine, APPENDED, "number")
    assert numbers == sorted([-1, *range(appended)])
    assert _column(engine, MERGED, "number") == list(range(merged + 2))
    assert {result.outcome for result in results} <= {"done", "skipped", "partial"}
    assert "done" in {result.outcome for result in results if result.step == "compact"}


def _column(engine: Engine, table: IcebergTable, column: str) -> list[int]:
    query = f"SELECT {column} FROM {engine.catalog.sql_name(table.name)}"
    return sorted(row[0] for row in engine.sql(query).collect())


def for_seconds(seconds: float, also: IsEnough) -> IsEnough:
    """Return whether the time is over and something else is so, or the longest time is over."""
    end = time.monotonic() + seconds
    last = end + _LONGEST_SECONDS

    def is_over(results: list[StepResult], writers: list[Writer]) -> bool:
        now = time.monotonic()
        return now > last or (now > end and also(results, writers))

    return is_over


def is_enough(results: list[StepResult], writers: list[Writer]) -> bool:
    """Return whether a compaction and more than one write of each writer happened."""
    compactions = [
        result for result in results if result.step == "compact" and result.outcome == "done"
    ]
    return bool(compactions) and all(len(writer.tries) > 1 for writer in writers)


def has_conflict(results: list[StepResult], writers: list[Writer]) -> bool:
    """Return whether upkeep or a writer had to begin again."""
    is_lost = any("another commit" in result.reason for result in results)
    return is_lost or any(writer.conflicts for writer in writers)


@pytest.mark.long
def test_on_one_host(embedded_engine: Engine) -> None:
    results, writers = run_together(
        embedded_engine, embedded_engine, for_seconds(_SECONDS, is_enough)
    )
    check(embedded_engine, results, writers)
    assert not has_conflict(results, writers)


@pytest.mark.long
@on_embedded_alone("moto loses commits that race; test_glue_conflicts.py has such")
def test_on_two_hosts(embedded_engine: Engine, tmp_path: Path) -> None:
    elsewhere = replace(embedded_engine, lock_dir=tmp_path / "locks")
    results, writers = run_together(
        embedded_engine,
        elsewhere,
        for_seconds(_SECONDS, lambda *so_far: is_enough(*so_far) and has_conflict(*so_far)),
    )
    check(embedded_engine, results, writers)
    assert has_conflict(results, writers)
