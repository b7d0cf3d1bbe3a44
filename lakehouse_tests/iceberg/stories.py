"""What may happen to a table and its source: deliveries, runs, kills and rejections, played on
real tables.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Any, Literal

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.read.cleared_rows import cleared_table
from lakehouse.iceberg.read.inputs import Input, incremental, latest, versions_of
from lakehouse.iceberg.read.quarantined_rows import refused_values
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.iceberg.values.value_ranges import AllPartitions, joined
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.write import user_removals
from lakehouse.iceberg.write.row_versions import newest_accepted
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables import table_properties
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
    Versions,
    WriteMode,
)
from lakehouse_tests.iceberg.declarations import SOURCE, content, put

Row = tuple[str | None, str, int, int]
"""A key, a text that may be a number, a version, and which of three partitions it lies in; 3
for none.
"""
Shape = Literal[
    "merge", "newest", "append", "overwrite", "newest of all", "partitions", "versions"
]
"""How the table is written, and from which inputs."""
RowLevels = Literal["whole files", "delete files", "both"]
"""How merges change rows: as of a small table, as of a large one, or as of a large one where
some change much of it.
"""
Kind = Literal["date", "timestamp", "string", "int"]
LEFT_OUT = "skip"
"""The key of the rows that the function leaves out by itself."""
_PLACES: dict[Kind, list[Any]] = {
    "date": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 9), None],
    "timestamp": [*(datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (5, 6, 23)), None],
    "string": ["east", "south", "west", None],
    "int": [1, 2, 7, None],
}
"""The last is in no partition."""
_SPECS: dict[Kind, str] = {
    "date": "days(d)",
    "timestamp": "hours(d)",
    "string": "d",
    "int": "d",
}
_STEPS: dict[Kind, Any] = {"date": timedelta(days=1), "timestamp": timedelta(hours=1), "int": 1}
_serial = count()


@dataclass(frozen=True)
class Deliver:
    """A file comes; one that came before with the same rows brings nothing."""

    file: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Compute:
    """The table is computed: by another function, anew, or by a process that dies before it
    publishes.
    """

    resolved: bool = False
    full_recompute: bool = False
    killed: bool = False


@dataclass(frozen=True)
class Reject:
    """A person takes out what came as the n-th delivery."""

    number: int


@dataclass(frozen=True)
class Replay:
    """The refused rows are judged again by the other function, or by a process that dies."""

    killed: bool = False
    resolved: bool = True


@dataclass(frozen=True)
class Clear:
    """A person clears the quarantine, or a process that dies before it has deleted anything."""

    killed: bool = False


Step = Deliver | Compute | Reject | Replay | Clear


class Killed(Exception):
    """The process died."""


@dataclass
class Lakehouse:
    """A source and a table that is computed from it."""

    engine: Engine
    shape: Shape
    kind: Kind
    row_levels: RowLevels = "whole files"
    delivered: list[RejectedDelivery] = field(default_factory=list)

    def __post_init__(self) -> None:
        number = next(_serial)
        spec = _SPECS[self.kind]
        # A source tells what is owed by days or values: for a day all of its hours are.
        source_spec = "days(d)" if self.kind == "timestamp" else spec
        columns = [Column("k", "string"), Column("n", "bigint"), Column("d", self.kind)]
        self.source = IcebergTable(
            name=f"bronze.story_{number}",
            comment="Rows as they were delivered.",
            columns=[*columns, Column("v", "string"), *SOURCE],
            partitioning=[source_spec],
            write=Append(),
        )
        modes: dict[Shape, WriteMode] = {
            "merge": Merge(on=["k"]),
            "newest": Merge(on=["k"]),
            "append": Append(),
            "overwrite": Overwrite(),
            "newest of all": Overwrite(),
            "partitions": OverwritePartitions(by="d"),
            "versions": OverwritePartitions(by="d"),
        }
        self.table = IcebergTable(
            name=f"silver.story_{number}",
            comment="Rows whose text is a number.",
            columns=[*columns, Column("v", "int"), *SOURCE],
            partitioning=[spec],
            write=modes[self.shape],
            rules=[
                castable("v", "int"),
                *([not_null("d")] if self.shape == "versions" else []),
            ],
            versions=(
                Versions("k", ("n", "_source_file", "_source_row", "_source_sha256"))
                if self.shape in ("newest", "newest of all", "versions")
                else None
            ),
        )

    @property
    def inputs(self) -> dict[str, Input]:
        """What the table is computed from."""
        name = self.source.name
        reads = {
            "partitions": latest(name, by="d"),
            "overwrite": latest(name),
            "newest": versions_of(name),
            "newest of all": versions_of(name),
            "versions": versions_of(name, by="d"),
        }
        return {"delivered": reads.get(self.shape, incremental(name))}

    def play(self, steps: Sequence[Step], patch: pytest.MonkeyPatch) -> None:
        """Do one step after the other, and compute all partitions at the end, as the next file
        would.
        """
        if self.row_levels != "whole files":
            patch.setattr(table_properties, "LARGE_MIB", 0)
        if self.row_levels == "delete files":
            patch.setattr(table_properties, "MOST_CHANGED", math.inf)
        for step in steps:
            if isinstance(step, Deliver):
                self._deliver(step)
            elif isinstance(step, Reject):
                self._reject(step)
            elif isinstance(step, Replay):
                self._replay(step, patch)
            elif isinstance(step, Clear):
                self._clear(step, patch)
            else:
                self._compute(step, patch)
        self._deliver(
            Deliver("last.csv", tuple((LEFT_OUT, "1", 1, place) for place in range(3)))
        )
        self._compute(
            Compute(
                resolved=any(
                    isinstance(step, Compute | Replay) and step.resolved for step in steps
                )
            ),
            patch,
        )

    def _deliver(self, step: Deliver) -> None:
        its = RejectedDelivery(step.file, sha256(repr(step.rows).encode()).hexdigest())
        self.delivered.append(its)
        places = _PLACES[self.kind]
        rows = [
            (key, version, places[place], text, its.source_file, its.sha256, number)
            for number, (key, text, version, place) in enumerate(step.rows, 1)
        ]
        put(self.engine, self.source, rows)

    def _reject(self, step: Reject) -> None:
        if not self.delivered:
            return
        its = self.delivered[step.number % len(self.delivered)]
        name = self.engine.catalog.sql_name(self.source.name)
        with session_with(self.engine.spark, its.to_summary(by="somebody", why="why")):
            self.engine.sql(f"DELETE FROM {name} WHERE {its.deleted_by}")
        if self.engine.catalog.has(f"{self.table.name}_quarantine"):
            held = self.engine.catalog.sql_name(f"{self.table.name}_quarantine")
            self.engine.sql(f"DELETE FROM {held} WHERE {its.deleted_by}")

    def _compute(self, step: Compute, patch: pytest.MonkeyPatch) -> None:
        if not self.delivered:
            return
        run = Run(
            f"run-{next(_serial)}",
            self._partitions(full_recompute=step.full_recompute),
            full_recompute=step.full_recompute,
        )
        if not self.table.overwritten_by or run.partitions is not None:
            self._write(step, run, patch)

    def _replay(self, step: Replay, patch: pytest.MonkeyPatch) -> None:
        partitions = None
        if not self.delivered:
            return
        if self.table.overwritten_by:
            values = refused_values(self.engine, self.table, self.inputs)
            partitions = self._partitions_of(values)
            if partitions is None:
                return
        self._write(step, Run(f"run-{next(_serial)}", partitions, reads_everything=True), patch)

    def _clear(self, step: Clear, patch: pytest.MonkeyPatch) -> None:
        with patch.context() as dying:
            if step.killed:
                dying.setattr(user_removals, "session_with", _dying)
            try:
                user_removals.clear_quarantine(
                    self.engine, self.table, by="somebody", why="why"
                )
            except Killed:
                assert step.killed

    def _write(self, step: Compute | Replay, run: Run, patch: pytest.MonkeyPatch) -> None:
        compute = self._function(resolved=step.resolved)
        with patch.context() as dying:
            if step.killed:
                dying.setattr(branch, "fast_forward", dying_for(self.table.name))
            try:
                write(self.engine, self.table, compute, self.inputs, run)
            except Killed:
                assert step.killed

    def _partitions(self, *, full_recompute: bool) -> Partitions | None:
        if not self.table.overwritten_by:
            return None
        places = _PLACES[self.kind][:-1]
        stale = (
            set(places)
            if full_recompute
            else stale_values(self.engine, self.table, self.inputs)
        )
        return self._partitions_of(stale)

    def _partitions_of(self, stale: set[Any]) -> Partitions | None:
        places = _PLACES[self.kind][:-1]
        # A row without a partition goes along with the newest one.
        values = [value for value in places if _is_stale(value, stale)] or (
            places[-1:] if stale else []
        )
        if not values:
            return None
        step = _STEPS.get(self.kind)
        merged_ranges, all_spans = (
            () if step is None else tuple((value, value + step) for value in found)
            for found in (values, places)
        )
        every = (
            AllPartitions(tuple(joined(all_spans)))
            if all_spans
            else AllPartitions(values=frozenset(places))
        )
        return Partitions(tuple(map(str, values)), merged_ranges, every)

    def _function(self, *, resolved: bool) -> Callable[..., DataFrame]:
        def changed(delivered: DataFrame) -> DataFrame:
            text = "decode(v, 'mend', '7', '2', 'two', v)" if resolved else "v"
            others = [column.name for column in self.source.columns if column.name != "v"]
            return delivered.where(f"NOT k <=> '{LEFT_OUT}'").selectExpr(
                *others, f"{text} AS v"
            )

        def newest(delivered: DataFrame) -> DataFrame:
            order = ("n", "_source_file", "_source_row", "_source_sha256")
            table = replace(self.table, versions=Versions("k", order))
            return newest_accepted(table, changed(delivered))

        return newest if self.shape == "merge" else changed

    def fates(self) -> dict[str, set[tuple]]:
        """Return the rows of the source, the table and the quarantine: each by its source, its
        key and its version; and those that were cleared, by their source.
        """
        its = ("_source_file", "_source_sha256", "_source_row", "k", "n")
        if not self.delivered:
            return {"source": set(), "table": set(), "quarantine": set(), "cleared": set()}
        held = {
            (file, sha256, row, key, int(version))
            for file, sha256, row, key, version in content(
                self.engine, f"{self.table.name}_quarantine", *its
            )
        }
        source, table = (
            set(content(self.engine, found.name, *its)) for found in (self.source, self.table)
        )
        cleared = cleared_table(self.table).name
        known = self.engine.catalog.has(cleared)
        gone = set(content(self.engine, cleared, *its[:3])) if known else set()
        return {"source": source, "table": table, "quarantine": held, "cleared": gone}


def _is_stale(value: Any, stale: set[Any]) -> bool:
    return value in stale or (isinstance(value, datetime) and value.date() in stale)


def _dying(*_: object) -> None:
    raise Killed


def dying_for(table: str) -> Callable[..., None]:
    publish = branch.fast_forward

    def fast_forward(engine: Engine, name: str, *rest: Any) -> None:
        if name == table:
            raise Killed
        publish(engine, name, *rest)

    return fast_forward
