"""Whatever is delivered to a table that is computed by partitions: each row is in the table or
in its quarantine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from lakehouse.iceberg.metadata.all_partitions import AllPartitions
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.value_ranges import joined
from lakehouse.iceberg.metadata.write_context import Partitions, Run
from lakehouse.iceberg.read.inputs import Input, existing_rows, incremental, latest
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.write import write_audit_publish
from lakehouse.tables.table import Append, Column, IcebergTable, OverwritePartitions
from lakehouse_tests.iceberg.declarations import MONDAY, content, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.long]

SOURCE = [
    Column("_source_file", "string"),
    Column("_source_sha256", "string"),
    Column("_source_row", "bigint"),
]
DAY = timedelta(days=1)
POOLS: dict[str, list[Any]] = {
    "date": [
        MONDAY,
        MONDAY + DAY,
        MONDAY + 2 * DAY,
        date(2009, 1, 1),
        date(9999, 12, 31),
        None,
    ],
    "string": ["north", "south", "west", "", "O'Neill", None],
    "int": [1, 2, 3, -7, 2_000_000_000, None],
}
"""By type of the partition column: two values that are partitions, one that becomes one, and
others that never are.
"""
MODES = ("latest", "incremental")
_names = (f"t{number}" for number in count())


@dataclass(frozen=True)
class Step:
    """What happens before the table is brought up to date; `value` and `v` of each row that is
    delivered.
    """

    rows: tuple[tuple[int, int], ...]
    grows: bool = False
    rejects: bool = False
    is_killed: bool = False


ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1, 500])), max_size=4).map(tuple)
STEPS = st.builds(Step, ROWS, st.booleans(), st.booleans(), st.booleans())
NOTHING_ELSE = Step(rows=((5, 1), (3, 1)))
"""A delivery of which nothing belongs to a partition."""
BECOMES_ONE = (
    Step(rows=((0, 1), (2, 1), (2, 500), (5, 1))),
    Step(rows=(), grows=True),
    Step(rows=(), rejects=True),
)


@dataclass
class World:
    """A source and a table by partitions of some type, and what was delivered and not
    rejected.
    """

    engine: Engine
    column_type: str
    mode: str
    name: str = field(default_factory=lambda: next(_names))
    keys: int = 2
    delivered: dict[tuple[str, int], Any] = field(default_factory=dict)
    files: Iterator[int] = field(default_factory=count)

    @property
    def raw(self) -> IcebergTable:
        columns = [Column("p", self.column_type), Column("v", "int"), *SOURCE]
        return IcebergTable(
            f"bronze.{self.name}", "As it came.", columns, partitioning=["p"], write=Append()
        )

    @property
    def table(self) -> IcebergTable:
        mode = OverwritePartitions(by="p")
        return replace(
            self.raw, name=f"silver.{self.name}", write=mode, rules=[between("v", 0, 100)]
        )

    @property
    def inputs(self) -> dict[str, Input]:
        if self.mode == "latest":
            return {"came": latest(self.raw.name, by="p")}
        return {
            "came": incremental(self.raw.name, by="p"),
            "stand": existing_rows(self.table.name, by="p"),
        }

    def partitions(self, values: list[Any]) -> Partitions:
        every = POOLS[self.column_type][: self.keys]
        if self.column_type == "string":
            return Partitions(tuple(values), (), AllPartitions((), frozenset(every)))
        step = DAY if self.column_type == "date" else 1
        merged_ranges = {value: (value, value + step) for value in every}
        every_span = AllPartitions(tuple(joined(merged_ranges.values())))
        return Partitions(
            tuple(map(str, values)), tuple(merged_ranges[value] for value in values), every_span
        )

    def deliver(self, step: Step) -> None:
        if step.rejects and self.delivered:
            file = min(file for file, _ in self.delivered)
            self.engine.sql(
                f"DELETE FROM {self.engine.catalog.sql_name(self.raw.name)} WHERE _source_file"
                f" = '{file}'"
            )
            self.delivered = {
                key: value for key, value in self.delivered.items() if key[0] != file
            }
        if step.rows:
            file = f"f{next(self.files)}"
            values = [(POOLS[self.column_type][at], v) for at, v in step.rows]
            rows = [
                (value, v, file, f"sha-{file}", row) for row, (value, v) in enumerate(values, 1)
            ]
            schema = ", ".join(f"{one.name} {one.type}" for one in self.raw.columns)
            write_audit_publish.write(self.engine, self.raw, rows_of(self.engine, schema, rows))
            self.delivered |= {(file, row): value for row, (value, _) in enumerate(values, 1)}

    def catch_up(self) -> None:
        every = POOLS[self.column_type][: self.keys]
        stale = stale_values(self.engine, self.table, self.inputs, self.partitions([]).every)
        run = [value for value in every if value in stale] or (every[-1:] if stale else [])
        if run:
            partitions = self.partitions(run)
            write_audit_publish.write(
                self.engine,
                self.table,
                union,
                self.inputs,
                Run(partitions=partitions, full_recompute=False),
            )

    def fates(self) -> list[tuple[Any, ...]]:
        """Each row of the table, and of its quarantine with its reasons."""
        if not self.engine.catalog.has(self.table.name):
            return []
        key = ["_source_file", "_source_row"]
        stand = [(*row, "in the table") for row in content(self.engine, self.table.name, *key)]
        return stand + content(
            self.engine, f"{self.table.name}_quarantine", *key, "array_join(_reasons, ',')"
        )


def union(came: "DataFrame", stand: "DataFrame | None" = None) -> "DataFrame":
    return came if stand is None else came.unionByName(stand)


@pytest.mark.parametrize("column_type", POOLS)
@settings(
    max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(mode=st.sampled_from(MODES), steps=st.lists(STEPS, min_size=1, max_size=2))
def test_each_row_is_in_the_table_or_in_quarantine(embedded_engine, column_type, mode, steps):
    live_through(World(embedded_engine, column_type, mode), steps)


@pytest.mark.parametrize(
    ("column_type", "mode"),
    [
        ("date", "latest"),
        pytest.param("string", "incremental", marks=pytest.mark.soak),
        pytest.param("int", "incremental", marks=pytest.mark.soak),
    ],
)
def test_a_value_that_becomes_a_partition_leaves_the_quarantine(
    embedded_engine, column_type, mode
):
    live_through(World(embedded_engine, column_type, mode), [NOTHING_ELSE, *BECOMES_ONE])


def live_through(world: World, steps: list[Step]) -> None:
    for step in steps:
        world.deliver(step)
        world.keys = 3 if step.grows else world.keys
        if step.is_killed:
            die_before_publishing(world)
        world.catch_up()
        assert (
            stale_values(world.engine, world.table, world.inputs, world.partitions([]).every)
            == set()
        )

    found = world.fates()
    assert sorted(row[:2] for row in found) == sorted(world.delivered)
    every = POOLS[world.column_type][: world.keys]
    outside = {key for key, value in world.delivered.items() if value not in every}
    assert {row[:2] for row in found if row[2] == "has_partition"} == outside


def die_before_publishing(world: World) -> None:
    """Run what is owed as a process does that is killed after its quarantine was published."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_audit_publish, "rows_attempt", killed)
        with pytest.raises(KeyboardInterrupt):
            world.catch_up()
            raise KeyboardInterrupt  # Nothing was owed.


def killed(attempt: Any, *_: Any) -> None:
    if attempt.table.overwritten_by:
        raise KeyboardInterrupt
    raise AssertionError("only the table is computed by rows")
