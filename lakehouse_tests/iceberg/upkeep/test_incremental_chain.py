"""Incremental tables with compaction and expiry in any order: each row is read once."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import (
    Input,
    changed_keys,
    existing_rows,
    incremental,
    latest,
)
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots, find_pins
from lakehouse.iceberg.values.value_ranges import AllPartitions
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome, Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, OverwritePartitions
from lakehouse.upkeep.compaction import compact
from lakehouse_tests.conftest import on_embedded_alone
from lakehouse_tests.iceberg.upkeep.clock import let_days_pass
from lakehouse_tests.iceberg.upkeep.tables import TARGET_BYTES

ROWS = [Column("id", "bigint"), Column("key", "bigint"), Column("day", "date")]
ARRIVED = IcebergTable(
    name="bronze.arrived",
    comment="Rows as they came.",
    columns=ROWS,
    write=Append(once_by=()),
    # By value: PyIceberg, which appends in a tenth of the time, writes no other partitions.
    partitioning=["day"],
)
COPIED = IcebergTable(
    name="silver.copied", comment="The same rows.", columns=ROWS, write=Append(once_by=())
)
NEWEST = IcebergTable(
    name="silver.newest",
    comment="The row of each key that came last.",
    columns=ROWS,
    write=Merge(on=["key"]),
    row_level="merge-on-read",
)
DAYS = IcebergTable(
    name="silver.days",
    comment="Rows by day.",
    columns=ROWS,
    write=OverwritePartitions(by="day"),
    partitioning=["days(day)"],
)
COUNTS = IcebergTable(
    name="gold.counts",
    comment="How many rows a day has.",
    columns=[Column("day", "date"), Column("rows", "bigint")],
    write=Merge(on=["day"]),
)
TABLES = (ARRIVED, COPIED, NEWEST, DAYS, COUNTS)
READERS = {ARRIVED: (COPIED, NEWEST, DAYS), DAYS: (COUNTS,)}
PROMPT = (NEWEST, DAYS, COUNTS)
"""Tables that are computed at least every `MOST_DAYS`; `COPIED` after `BEHIND_DAYS`."""
MOST_DAYS = 16
BEHIND_DAYS = 40
KEPT_FOR = timedelta(days=30)
KEPT = 1
MONTH = [date(2024, 1, day) for day in range(1, 5)]
EVERY = AllPartitions(((MONTH[0], MONTH[-1] + timedelta(1)),))
READS = incremental(ARRIVED.name)
INPUTS: Mapping[IcebergTable, Mapping[str, Input]] = {
    COPIED: {"rows": READS},
    NEWEST: {"rows": READS},
    DAYS: {
        "rows": incremental(ARRIVED.name, by="day"),
        "existing": existing_rows(DAYS.name, by="day"),
    },
    COUNTS: {
        "rows": changed_keys(DAYS.name, of="day", by="day"),
        "all_rows": latest(DAYS.name),
    },
}
Row = tuple[int, int, date]


def newest_of_key(rows: DataFrame) -> DataFrame:
    last = rows.groupBy("key").agg({"id": "max"}).withColumnRenamed("max(id)", "id")
    return rows.join(last, ["key", "id"])


def with_existing(rows: DataFrame, existing: DataFrame) -> DataFrame:
    return existing.unionByName(rows)


def count_rows(rows: DataFrame, all_rows: DataFrame) -> DataFrame:
    of_changed = all_rows.join(rows, "day", "left_semi")
    return of_changed.groupBy("day").count().withColumnRenamed("count", "rows")


FUNCTIONS: Mapping[IcebergTable, Callable[..., DataFrame]] = {
    COPIED: lambda rows: rows,
    NEWEST: newest_of_key,
    DAYS: with_existing,
    COUNTS: count_rows,
}


@dataclass
class Chain:
    """The tables, and what they have to hold."""

    engine: Engine
    chosen: random.Random
    days_a_cycle: int
    ids: Iterator[int] = field(default_factory=count)
    arrived: list[Row] = field(default_factory=list)
    read: dict[IcebergTable, int] = field(default_factory=lambda: defaultdict(int))
    """By table, how many rows of those that arrived it has read, or its source had."""
    bases: dict[IcebergTable, int] = field(default_factory=dict)
    """By table, the snapshot that it read last."""
    day: int = 0
    """Today; counted from the first."""
    computed_on: dict[IcebergTable, int] = field(default_factory=dict)
    """By table, the day on which it was computed last."""
    expired: dict[IcebergTable, int] = field(default_factory=lambda: defaultdict(int))
    pinned: int = 0
    """How often expiry was held back by the reader that is far behind."""
    compacted: int = 0

    def run(self, cycles: int) -> None:
        """Do all that a cycle has in random order, and let days pass after each."""
        planning.ensure(self.engine, ARRIVED, "")
        self.ingest()
        self._compute_all()
        for _ in range(cycles):
            for do in self._in_any_order():
                do()
            for table in TABLES:
                let_days_pass(self.engine, self.days_a_cycle, table.name)
            self.day += self.days_a_cycle
        self.expire(ARRIVED)
        self._expire_what_says_what_was_read()
        self.ingest()
        self._compute_all()

    def _expire_what_says_what_was_read(self) -> None:
        """Compact readers as another engine does, without watermarks; expire the rest."""
        procedure = f"{self.engine.catalog.name}.system.rewrite_data_files"
        for table in TABLES[1:]:
            self.engine.sql(
                f"CALL {procedure}(table => '{table.name}', options => map('rewrite-all', 'true'))"
            ).collect()
            let_days_pass(self.engine, KEPT_FOR.days + 1, table.name)
            self.expire(table)

    def _compute_all(self) -> None:
        for table in (*PROMPT, COPIED):
            self.compute(table)

    def _in_any_order(self) -> list[Callable[[], None]]:
        work: list[Callable[[], None]] = [self.ingest]
        for table in PROMPT:
            is_overdue = self.day - self.computed_on[table] >= MOST_DAYS
            if is_overdue or self.chosen.random() < 0.2:
                work.append(partial(self.compute, table))
        if self.day - self.computed_on[COPIED] >= BEHIND_DAYS:
            work.append(partial(self.compute, COPIED))
        work.append(partial(self.compact, self.chosen.choice(TABLES)))
        for table in (ARRIVED, self.chosen.choice(TABLES[1:])):
            work.append(partial(self.expire, table))
        self.chosen.shuffle(work)
        return work

    def ingest(self) -> None:
        rows: list[Row] = []
        for _ in range(self.chosen.randint(1, 5)):
            rows.append((next(self.ids), self.chosen.randrange(7), self.chosen.choice(MONTH)))
        loaded = self.engine.catalog.load(ARRIVED.name)
        columns = [pa.array(values) for values in zip(*rows, strict=True)]
        loaded.append(pa.table(columns, schema=loaded.schema().as_arrow()))
        self.arrived += rows

    def compute(self, table: IcebergTable) -> None:
        """Compute a table from what is new, and see that it read that and no more."""
        run = self._run() if table is DAYS else Run("run", full_recompute=False)
        if run is None:
            return
        source = DAYS if table is COUNTS else ARRIVED
        there = self.read[DAYS] if table is COUNTS else len(self.arrived)
        new_rows = there - self.read[table]
        outcome = write(self.engine, table, FUNCTIONS[table], INPUTS[table], run)
        if table in self.bases:
            check_read(table, outcome, new_rows)
        self.read[table], self.computed_on[table] = there, self.day
        base = read_history(self.engine, table.name).watermark(source.name)
        self.bases[table] = base
        assert content(self.engine, table) == self.expected(table)

    def _run(self) -> Run | None:
        stale = sorted(stale_values(self.engine, DAYS, INPUTS[DAYS], EVERY))
        if not stale:
            return None
        merged_ranges = tuple((day, day + timedelta(1)) for day in stale)
        return Run("run", Partitions(tuple(map(str, stale)), merged_ranges, EVERY), False)

    def expected(self, table: IcebergTable) -> list[tuple[Any, ...]]:
        rows = self.arrived[: self.read[table]]
        if table is NEWEST:
            return sorted({key: (id_, key, day) for id_, key, day in rows}.values())
        if table is not COUNTS:
            return sorted(rows)
        counted: dict[date, int] = defaultdict(int)
        for _, _, day in rows:
            counted[day] += 1
        return sorted(counted.items())

    def compact(self, table: IcebergTable) -> None:
        result = compact(self.engine, table.name, target_bytes=TARGET_BYTES)
        assert result.outcome in ("done", "skipped"), result
        self.compacted += result.outcome == "done"

    def expire(self, table: IcebergTable) -> None:
        """Expire old snapshots of a table, and see that what its readers need is kept."""
        older_than = datetime.now(UTC) - KEPT_FOR
        readers = READERS.get(table, ())
        pins = find_pins(self.engine, table.name, [reader.name for reader in readers])
        result = expire_snapshots(
            self.engine, table.name, older_than=older_than, keep=KEPT, pins=pins
        )
        assert result.outcome in ("done", "skipped"), result
        self.expired[table] += int(result.step_metrics.get("expired_snapshots", 0))
        kept = read_history(self.engine, table.name).snapshots
        for reader in readers:
            base = kept[self.bases[reader]]
            if base.committed_at < older_than:
                assert f"watermark of {reader.name}" in result.reason, result
                self.pinned += 1


def check_read(table: IcebergTable, outcome: Outcome, new_rows: int) -> None:
    """See that a table that was computed before read what is new, and that alone."""
    pin = outcome.pins["rows"]
    assert isinstance(outcome, Unchanged) == (not new_rows), outcome
    assert pin.note == "", outcome
    assert pin.since_snapshot_id is not None, outcome
    if table is not COUNTS:
        assert pin.rows == new_rows, outcome


def content(engine: Engine, table: IcebergTable) -> list[tuple[Any, ...]]:
    rows = engine.catalog.load(table.name).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def run_chain(engine: Engine, cycles: int, days_a_cycle: int) -> None:
    """Run the chain, and see that upkeep had something to do, and something to hold it back."""
    chain = Chain(engine, random.Random(5), days_a_cycle)

    chain.run(cycles)

    assert chain.compacted
    assert chain.pinned
    assert [table.name for table in TABLES if not chain.expired[table]] == []


@on_embedded_alone("days pass in a folder")
@pytest.mark.long
def test_six_cycles(embedded_engine: Engine) -> None:
    run_chain(embedded_engine, cycles=6, days_a_cycle=8)


@on_embedded_alone("days pass in a folder")
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_forty_cycles(embedded_engine: Engine) -> None:
    run_chain(embedded_engine, cycles=40, days_a_cycle=2)
